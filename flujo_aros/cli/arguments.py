"""The values of options: strings and files, `k=v` pairs, models, schemas and types to import."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flujo_aros.blueprint.files import SUFFIXES, not_utf8
from flujo_aros.cli.commands import Deps, Limits, Models, Run, Submit, Worker
from flujo_aros.cli.screen import Text, say, stdout_reserved
from flujo_aros.contract import Contract, compile_contract, compile_schema, require_keywords, written_contract
from flujo_aros.errors import BlueprintError, ContractError, UsageError, file_errors, raised_words
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.pipeline.modules import (
    SUFFIX,
    allowed_name,
    find_beside,
    imported_module,
    is_allowed,
    is_module_name,
    reject_ambiguous_module,
    to_allow,
    use_file,
    use_folder,
)
from flujo_aros.settings import read_settings
from flujo_aros.spelling import nearest

if TYPE_CHECKING:
    from flujo_aros.evals.replies import ReplyCache
    from flujo_aros.pipeline.per_minute import PerMinute
    from flujo_aros.telemetry.journal import Journal
    from flujo_aros.telemetry.records import Story


def chosen_models(options: Models) -> dict[str, Any]:
    """Return the models that --model and --profile select, as arguments for `load_blueprint`.

    Raises `UsageError` for two models for all agents.
    """
    models = options.models
    incomplete = next((each for each in models if _is_pair(each) and not all(each.split("=", 1))), None)
    if incomplete is not None:
        words = "write OLD=NEW, the name of an agent or a model and the model to use instead"
        raise UsageError(f"--model: {words}, not {incomplete!r}")
    if len(models) > 1 and not all(map(_is_pair, models)):
        raise UsageError("--model: pass one model for all agents, or OLD=NEW for each model to replace")
    if models and not _is_pair(models[0]):
        return {"models": models[0], "profile": options.profile}
    return {"models": dict(each.split("=", 1) for each in models) or None, "profile": options.profile}


def _is_pair(model: str) -> bool:
    """Return whether an option has the form OLD=NEW; a URL may also contain `=`."""
    return "=" in model.partition("@http")[0]


def per_minute(options: Limits | Worker, models: Collection[str] = ()) -> dict[str, PerMinute]:
    """Return the limits of each provider. Raises `UsageError` for an invalid one, and warns about one that applies to
    none of these models, if there are any.
    """
    from flujo_aros.pipeline.per_minute import PerMinute  # imported here: only runs need the model host

    try:
        limits = dict(PerMinute.parse(each) for each in options.limits)
    except UsageError as error:
        raise UsageError(f"--limit: {error}") from error
    for provider in limits if models else ():
        if not any(_may_be_of(provider, model) for model in models):
            named = ", ".join(sorted(models))
            words = f"--limit {provider}: no model of the blueprint is from this provider, only from {named}"
            say(Text.assemble(("warning: ", "yellow"), words))
    return limits


def _may_be_of(provider: str, model: str) -> bool:
    """Return whether a limit of this provider may apply to the model: `openai` for `openai-responses:o3`, and `google`
    for `google-gla:gemini-2.5-pro`.
    """
    family = provider.partition("-")[0]
    return family in re.split("[-/]", model.partition(":")[0]) or (provider == "compatible-server" and "@http" in model)


def open_cache(wanted: bool) -> AbstractContextManager[ReplyCache | None]:
    """Open the cache that `--cache` enables; without it, there is none."""
    if not wanted:
        return nullcontext()
    from flujo_aros.database import make_folder_of
    from flujo_aros.evals.replies import ReplyCache

    file = Path(".aros") / "cache.sqlite"
    make_folder_of(file)
    return ReplyCache(file)


def open_to_read() -> Journal:
    """Return the existing journal. Raises `UsageError` if it is off or empty."""
    from flujo_aros.telemetry.journal import open_journal  # imported here: `aros --help` needs no database

    journal = open_journal(read_settings().journal, create=False)
    if journal is None:
        raise UsageError("the journal is turned off by AROS_JOURNAL or the settings")
    return journal


def recorded(run: str) -> Story:
    """Return the run with this id or prefix, or `last`, from the journal. Raises `UsageError` if there is none."""
    with open_to_read() as journal:
        return journal.story(run)


def given_input(source: str, option: str = "--input") -> str:
    """Return the same as `given_text` without a byte order mark, for input that a person wrote."""
    return given_text(source, option).removeprefix("\ufeff")


def run_input(options: Run | Submit) -> Any:
    """Return the input of one run: JSON from `--input-json`, or from `--input` text or content, and a list if that
    option was given several times.

    Raises `UsageError` for invalid JSON, and for several values that are all text, since it is unclear how to join
    them.
    """
    if options.json_input:
        return _json_input(options.json_input[0])
    from flujo_aros.host import has_content  # imported here: `aros --help` needs no model host

    sources = options.sources
    if len(sources) == 1:
        return _text_or_content(sources[0])
    parts = [_text_or_content(source) for source in sources]
    if sources.count("-") > 1 or not has_content(parts):
        raise UsageError(
            f"--input is given {len(sources)} times: several inputs are combined only if they include images, audio, "
            "video or documents; pass plain text in one --input, and - only once"
        )
    return parts


def _json_input(source: str) -> Any:
    """Return the value of `--input-json`, with the files and URLs that it names, as in a row of `--inputs`."""
    from flujo_aros.evals.cases import json_error, parse_json  # imported here: `aros --help` needs no model host
    from flujo_aros.host import with_named_content

    option = "--input-json"
    text = given_input(source, option)
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        cure = "" if text.lstrip().startswith(("{", "[")) else "; pass a plain string as --input"
        raise UsageError(f"{option} is not JSON: {json_error(error)}{cure}") from error
    return with_named_content(value, Path(source[1:]).parent if source.startswith("@") else Path())


def _text_or_content(source: str) -> Any:
    """Return one value of `--input`. For `@photo.png` and other images, audio, video or documents, it is their content.

    `@https://…` is the content at that URL.
    """
    if not source.startswith("@") or source.startswith("@@") or source == "@":
        return given_input(source)
    from flujo_aros.host import content_at, content_file  # imported here: `aros --help` needs no model host

    if source.startswith(("@https://", "@http://")):
        found = content_at(source[1:])
        if found is None:
            why = "its path does not end in a known suffix, such as .png or .pdf; download it first, and pass @FILE"
            raise UsageError(f"--input: {source[1:]} is not the URL of an image, audio, video or document: {why}")
        return found
    file = Path(source[1:])
    with file_errors(f"--input: cannot read {source[1:]!r}"):
        content = content_file(file)
        data = file.read_bytes() if content is None else b""
    cure = "if it is an image, audio or document, give its name the suffix of its type, such as .png, .wav or .pdf"
    return _decode(data, str(file), cure).removeprefix("\ufeff") if content is None else content


_MAX_FILE_NAME: Final = 255


def given_text(source: str, option: str = "--input") -> str:
    """Return the string for `TEXT`, `@FILE` or `-` (stdin); `@@…` is a string that begins with `@`.

    A byte order mark is kept. Raises `UsageError` if a file cannot be read or is not UTF-8.
    """
    if source == "-":
        closed = sys.stdin is None  # pyright: ignore[reportUnnecessaryComparison]  # None when the parent closed it
        return _decode(b"" if closed else sys.stdin.buffer.read(), "stdin")
    if source.startswith("@@"):
        return source[1:]
    if source == "@":
        cure = "write @@… for a string that begins with @"
        raise UsageError(f"{option}: @ must be followed by the name of a file; {cure}")
    if source.startswith("@"):
        return file_text(source[1:], option)
    may_name_file = "." in source.strip(".") and len(source) <= _MAX_FILE_NAME and "\n" not in source
    if may_name_file and Path(source).is_file():  # a word without a suffix is text, not a file name
        say(f"note: {source} is a file; write @{source} to send its contents", "yellow")
    return source


def file_text(name: str, option: str, hint: str = "") -> str:
    """Return the text of a file. Raises `UsageError` naming the option that asked for it."""
    with file_errors(f"{option}: cannot read {name!r}", hint):
        data = Path(name).read_bytes()
    return _decode(data, name)


def ladder_in(name: str, option: str) -> Any:
    """Return the YAML or JSON document in a file, or written in place of its name, as plain values; for a ladder, its
    members, even if only stages are listed.

    Raises `UsageError` for a file that cannot be read, and `BlueprintError` for one that is neither.
    """
    inline = name.lstrip().startswith(("{", "["))
    written = _yaml(name, option) if inline else _yaml(file_text(name, option), name)
    if is_dict(written) and set(written) == {"ladder"}:
        written = written["ladder"]
    return {"stages": written} if is_list(written) else written


def _yaml(text: str, source: str) -> Any:
    """Parse YAML, or JSON, into plain values. Raises `BlueprintError`."""
    from flujo_aros.blueprint.document import parse_document  # imported here: `aros --help` reads no YAML

    return parse_document(text, source).plain()


def _decode(data: bytes, source: str, cure: str = "is it the right file?") -> str:
    # A byte order mark is kept: in a reply, removing it is a repair that the reader makes and reports.
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(str(BlueprintError(source, [not_utf8(data, error.start, cure)]))) from error


def given_pairs(pairs: list[str]) -> dict[str, Any]:
    """Return `k=v` pairs as a dict; a value that is valid JSON is parsed, and anything else is a string.

    >>> given_pairs(["lang=de", "limit=3"])
    {'lang': 'de', 'limit': 3}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {pair!r}: expected key=value, for example --set language=de")
        found[key.strip()] = _json_or_text(value, f"--set {key.strip()}")
    return found


def _json_or_text(value: str, what: str) -> Any:
    """Return a value as JSON, or else as a string. Raises `UsageError` for invalid text that looks like JSON."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        stripped = value.strip()
        if (stripped[:1], stripped[-1:]) not in (("{", "}"), ("[", "]")):
            return value
        why = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        cure = "write such a string as JSON, in quotes"
        raise UsageError(f"{what} looks like JSON but is not valid ({why}); {cure}") from error


def given_contract(
    schema: str | None, where: str | None = None, folders: Sequence[Path] = (), option: str = "--schema"
) -> Contract[Any]:
    """Return the contract for a schema (`FILE`, inline JSON, `module:Type` or `FILE.py:Type`) and the position of its
    payload (`tagged:result`). Modules that are not installed may be in `folders`. `option` is the one that names the
    schema.

    Raises `UsageError` if either cannot be loaded, and `ContractError` if it cannot be compiled.
    """
    if where is None:
        if schema is None:
            raise UsageError("--schema is missing: pass a JSON Schema, inline or in a file, or a type as module:Type")
        return compile_contract(_given_schema(schema, folders, option))
    has_options = where.startswith("{")  # a mapping, as in a blueprint: {tagged: result, strict: false}
    try:
        written = written_contract(_yaml(where, "--contract") if has_options else where)
    except ContractError as error:
        forms = "expected tagged:TAG, text:TAG, block:KEY,KEY… or event:KIND,KIND…; a schema belongs to --schema"
        why = str(error) if has_options else forms
        raise UsageError(f"--contract {where!r}: {why}") from error
    if schema is not None and not written.takes_schema:
        raise UsageError(f"--contract {where}: a {written.form} contract has no schema, so leave --schema out")
    return written.contract(None if schema is None else _given_schema(schema, folders, option))


def given_deps(options: Deps) -> Any:
    """Return the value of `--deps`: an object in a module, or the result of calling a function or class.

    Raises `UsageError` if `--allow` does not name the module, or if it has no such object or function without
    arguments.
    """
    reference = options.deps
    if reference is None:
        return None
    module, _, name = reference.rpartition(":")
    if not _is_reference(module, name):
        raise UsageError(f"--deps {reference!r}: write module:name, or FILE.py:name")
    if not is_allowed(allowed_name(module), options.allow):
        cure = f"if you trust it, pass --allow {to_allow(module)}"
        raise UsageError(f"--deps {reference}: this module may not be imported; {cure}")
    files = {allowed_name(each): each for each in options.allow if each.endswith(SUFFIX)}
    with stdout_reserved():  # output printed by a module must not mix with the result
        return _make_deps(_import("--deps", files.get(module, module), name, options.folders), reference)


def _make_deps(found: Any, reference: str) -> Any:
    """Return the deps themselves, or the result of the function or class that creates them."""
    if not (inspect.isclass(found) or inspect.isroutine(found)):
        return found
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        raise UsageError(f"--deps {reference} is async; name a plain function or class, or the value itself")
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise UsageError(
            f"--deps {reference} must not require arguments, since it is called without any: {error}"
        ) from error
    except ValueError:  # a builtin without a signature
        pass
    try:
        return found()
    except (Exception, SystemExit) as error:  # the user's code, which may raise anything
        raise UsageError(f"--deps {reference} cannot be called: {raised_words(error)}") from error


def _is_reference(module: str, name: str) -> bool:
    return is_module_name(name) and (module.endswith(SUFFIX) or is_module_name(module))


def _given_schema(schema: str, folders: Sequence[Path], option: str) -> Any:
    """Return the JSON Schema in a file, or the one written inline, or a type, whose module is imported."""
    if schema.lstrip().startswith("{"):
        return _parsed_schema(schema, "inline", option)
    path = Path(schema)
    if path.exists() and not path.is_dir():  # a pipe (`<(jq …)`) works like a file
        return _schema_file(schema, option)
    module, _, name = schema.rpartition(":")
    if not _is_reference(module, name):
        what = "that is a folder" if path.is_dir() else "there is no such file"
        types = "a type as module:Type or FILE.py:Type"
        raise UsageError(f"{option} {schema!r}: {what}; pass a JSON Schema, inline or in a file, or {types}")
    found = _import(option, module, name, folders)
    try:
        compile_contract(found)
    except ContractError as error:
        raise UsageError(f"{option} {schema}: {error}") from error
    return found


def _schema_file(name: str, option: str) -> dict[str, Any] | bool:
    """Return the JSON Schema in a file."""
    if name.endswith(SUFFIX):
        raise UsageError(f"{option} {name!r} is a Python file: name the type in it, as {name}:Type")
    return _parsed_schema(file_text(name, option), name, option)


def _parsed_schema(text: str, name: str, option: str) -> dict[str, Any] | bool:
    """Return a JSON Schema that is written in JSON, or in YAML if its name says so. Raises `UsageError`."""
    try:
        schema: Any = _yaml(text, name) if name.endswith(SUFFIXES) else json.loads(text.removeprefix("\ufeff"))
    except BlueprintError as error:
        raise UsageError(f"{option} {error}") from error
    except ValueError as error:
        raise UsageError(f"{option} {name!r} is not JSON: {error}") from error
    if isinstance(schema, bool):
        return schema
    if not is_dict(schema):
        raise UsageError(f"{option} {name!r}: a JSON Schema must be an object, not {type(schema).__name__}")
    try:
        require_keywords(compile_schema(schema).values)
    except ContractError as error:
        raise UsageError(f"{option} {name!r}: {error}") from error
    return schema


def _import(option: str, module: str, name: str, folders: Sequence[Path]) -> Any:
    """Return a value of an installed module, of the module in a file, or of a module in a given folder."""
    for folder in folders:
        use_folder(folder)
    if module.endswith(SUFFIX):
        module = use_file(module)
    reject_ambiguous_module(module)
    try:
        found = imported_module(module)
    except UsageError as failed:
        error = failed.__cause__
        if not isinstance(error, ModuleNotFoundError):
            raise UsageError(f"{option} {module}:{name}: {failed}") from error
        here = find_beside(module, [Path()]) if error.name == module else None
        file = "" if here is None else os.path.relpath(here[0])
        way = f"{option} ./{file}:{name} or --path ." if "." not in module else "--path ."
        hint = f"; if you trust {file}, pass {way}" if file else "; install it, or name its folder with --path"
        missing = f"there is no module {error.name!r} on Python's path"
        raise UsageError(f"{option} {module}:{name}: {missing}{hint}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            known = nearest(part, (each for each in dir(found) if not each.startswith("_")))
            where = f"{option} {module}:{name}: {getattr(found, '__name__', module)!r}"
            raise UsageError(f"{where} has no attribute {part!r}{known}")
        found = getattr(found, part)
    return found
