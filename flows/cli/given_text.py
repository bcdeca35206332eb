"""Text that a command is given to read with a tokenizer."""


def given_text(text: str, name: str) -> str:
    """Return a text as it is; raises `UsageError` where its bytes were no UTF-8, which no tokenizer takes.

    Python keeps such bytes of an argument as lone surrogates.
    """
    from flows.errors import UsageError

    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{name} holds bytes that are no UTF-8; write the text in UTF-8") from error
    return text
