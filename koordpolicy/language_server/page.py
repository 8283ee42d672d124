"""The manual's page on editors."""

_PAGE = """# Editors

`koordpolicy lsp` speaks the [Language Server Protocol](https://microsoft.github.io/language-server-protocol/) over standard
input and output. Any editor with a client for it shows, while you type:

- the findings of `koordpolicy check` for the whole bundle, tests included, open files in place of those on the disk; each
  leads to its page in the manual, and has its fix as a quick fix. `source.fixAll` does what `check --fix` does;
- completion of kinds, keys, words, bands, classes and plugins in YAML, and of facts, functions, methods, parameters,
  variables and constants in expressions, with types and units, also where the rest is not finished;
- on hover the meaning, type and unit of what stands there, and what it is worth in the cases of your PolicyTests;
- definitions and all references of parameters, variables, constants, functions, bands, classes, list elements and decisions,
  into the packs too; rename of what is your own, tried out before it is offered;
- the layout of `koordpolicy fmt`, an outline of documents, and colours of expressions.

A file belongs to the bundle around it, as for `koordpolicy check`. Without one, only files that speak of
`koordpolicy.io/` are looked at, and those beside them; other YAML is left alone. `--log-file` says where to write what goes
wrong. Positions are counted in UTF-8, UTF-16 or UTF-32, as the editor likes.

## Neovim

0.11 or newer, in `init.lua`:

```lua
vim.lsp.config('koordpolicy', {
  cmd = { 'koordpolicy', 'lsp' },
  filetypes = { 'yaml' },
  root_markers = { 'koordpolicy.yaml', '.git' },
})
vim.lsp.enable('koordpolicy')
```

## Helix

In `languages.toml`:

```toml
[language-server.koordpolicy]
command = "koordpolicy"
args = ["lsp"]

[[language]]
name = "yaml"
language-servers = ["koordpolicy", "yaml-language-server"]
```

## Emacs

With eglot, which is part of Emacs 29:

```lisp
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               '((yaml-mode yaml-ts-mode) . ("koordpolicy" "lsp"))))
```

## VS Code

With [Generic LSP Client (v2)](https://marketplace.visualstudio.com/items?itemName=zsol.vscode-glspc), in `settings.json`:

```json
{
  "glspc.server.command": "koordpolicy",
  "glspc.server.commandArguments": ["lsp"],
  "glspc.server.languageId": ["yaml"]
}
```

Beside it, [YAML](https://marketplace.visualstudio.com/items?itemName=redhat.vscode-yaml) may check against the JSON Schemas
that `koordpolicy schema --write DIR` writes; the language server needs neither.

## From a script

`koordpolicy check - --stdin-filename FILE` checks a text that is in no file yet, `koordpolicy fmt -` lays it out.
"""


def editors_page() -> str:
    """The page, ending with a line break."""
    return _PAGE
