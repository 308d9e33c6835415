// A page that says data-live asks for itself again, and shows what has changed; what is open stays open.
let tag = "";
async function look() {
  if (!("live" in document.body.dataset)) return;
  try {
    const reply = await fetch(location.pathname + location.search, { headers: tag ? { "If-None-Match": tag } : {} });
    const first = !tag;
    tag = reply.headers.get("ETag") || "";
    delete document.body.dataset.away;
    if (reply.ok && !first && getSelection().isCollapsed) show(new DOMParser().parseFromString(await reply.text(), "text/html"));
  } catch {
    document.body.dataset.away = "";
  }
  setTimeout(look, 2000);
}
function show(page) {
  for (const old of document.querySelectorAll("details[id]")) {
    const now = page.getElementById(old.id);
    if (now) now.open = old.open;
  }
  const focus = document.activeElement && document.activeElement.id;
  document.title = page.title;
  document.body.replaceWith(document.adoptNode(page.body));
  if (focus && document.getElementById(focus)) document.getElementById(focus).focus();
}
addEventListener("DOMContentLoaded", look);
