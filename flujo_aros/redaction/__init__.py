"""Finds secrets in text and values, and hides them: the lowest layer, used wherever text leaves the process.

The input is a string that is about to be printed, logged, journalled or sent to a model; the output is the same string
with a label such as `[secret-1]` in place of each secret. A `Vault` remembers the secret of each label, so that a reply
that copies the label can be restored.

A value is secret for one of two reasons (`kinds`):

- its form: keys and tokens of well-known kinds, private keys, and passwords in URLs;
- its name: what the text calls it (`password: …`, `the token is …`), its field or its environment variable.

Each regular expression is compiled when a text first needs it: compiling all of them would take a sixth of the import
time.

`text` finds known values in linear time, and reports whether a position is inside a JSON string, where the same secret
is written with escapes. Text that looks like ordinary data (a hash, a UUID, an order number) is not hidden: masking too
much would damage the data that a repair needs.
"""

from flujo_aros.redaction.kinds import (
    SecretsFound as SecretsFound,
    labelled_values as labelled_values,
    secrets_among as secrets_among,
    secrets_by_context as secrets_by_context,
    secrets_in as secrets_in,
)
from flujo_aros.redaction.text import (
    Matcher as Matcher,
    Quotes as Quotes,
    escaped as escaped,
    unescaped as unescaped,
)
from flujo_aros.redaction.vault import (
    Vault as Vault,
    secrets_of as secrets_of,
    without_secrets as without_secrets,
)
