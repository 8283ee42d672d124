"""A file that holds one document, with places."""

from pathlib import Path

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents import Document, read_documents
from koordpolicy.simulator.workload import WorkloadError


def one_document(file: Path) -> Document:
    """The document of a file. Raises WorkloadError with file, line and what is wrong."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise WorkloadError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{file}: not UTF-8 at byte {error.start}") from None
    found = Diagnostics()
    documents = read_documents(str(file), text, found)
    for finding in found:
        raise WorkloadError(f"{finding.span.file}:{finding.span.start.line}: {finding.message}")
    if len(documents) != 1:
        raise WorkloadError(f"{file}: expected one document, found {len(documents)}")
    return documents[0]
