"""What botocore raises, as the errors of the store.

Messages carry the error code, the key and the endpoint's host and port. They never carry the text that the
server or botocore wrote, nor anything from the request, because those can hold credentials.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from botocore import exceptions as boto

from store.errors import (
    AccessDenied,
    AnswerLost,
    BucketMissing,
    CellarError,
    ConfigurationError,
    Contended,
    CredentialsError,
    DiskFull,
    IntegrityError,
    KeyMissing,
    StorageUnavailable,
    Unreachable,
)

_REJECTED_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "UnrecognizedClientException",
    }
)
_NO_CREDENTIALS = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.CredentialRetrievalError,
    boto.ProfileNotFound,
    boto.TokenRetrievalError,
    boto.UnauthorizedSSOTokenError,
)
_WRONG_REGION = frozenset(
    {"AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"}
)
_DAMAGED_UPLOAD = frozenset(
    {"BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch"}
)
_FULL = frozenset({"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull"})
_BUSY = frozenset({"SlowDown", "ServiceUnavailable", "RequestTimeout", "TooManyRequests", "Throttling"})
_NO_ANSWER = (
    boto.ConnectionError,
    boto.HTTPClientError,
    boto.IncompleteReadError,
    boto.ResponseStreamingError,
    OSError,
)
_NOT_SENT = (boto.EndpointConnectionError, boto.ConnectTimeoutError, boto.ProxyConnectionError, boto.SSLError)


def endpoint_name(endpoint: str) -> str:
    """Return host and port of an endpoint URL, without user name, password, path and query."""
    parts = urlsplit(endpoint)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def status_of(error: boto.ClientError) -> int:
    """Return the HTTP status of an error answer."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def translate(error: Exception, verb: str, key: str, url: str, endpoint: str) -> CellarError:
    """Return the store's error for `error`, which was met when trying to `verb` the object `key`."""
    where = f"{verb} {key or 'objects'} in {url}"
    if isinstance(error, _NO_CREDENTIALS):
        return CredentialsError(
            f"cannot {where}: no usable AWS credentials found ({type(error).__name__}); set AWS_PROFILE, "
            "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if isinstance(error, boto.ClientError):
        return _answered(error, where, key, url, endpoint)
    if isinstance(error, boto.ParamValidationError):
        return ConfigurationError(f"cannot {where}: the bucket name is not valid; check the store URL")
    if isinstance(error, boto.SSLError):
        return Unreachable(
            f"cannot {where}: the certificate of {endpoint} is not trusted here; set AWS_CA_BUNDLE to the "
            "file of the authority that issued it, or check the endpoint (AWS_ENDPOINT_URL_S3)"
        )
    if isinstance(error, _NO_ANSWER):
        return Unreachable(
            f"cannot {where}: {endpoint} does not answer ({type(error).__name__}); check the endpoint "
            "(AWS_ENDPOINT_URL_S3) and the network, then run again"
        )
    return ConfigurationError(
        f"cannot {where}: {type(error).__name__}; check the AWS settings for {endpoint}"
    )


def translate_conditional(error: Exception, key: str, url: str, endpoint: str) -> CellarError:
    """Like `translate` for one unrepeated conditional write, telling "not done" from "not known".

    412 is left to the caller, who knows which condition it set. Every server error but "busy" may have been
    sent after the write landed.
    """
    if isinstance(error, boto.ClientError):
        status, code = status_of(error), error.response.get("Error", {}).get("Code", "")
        if status == 501 or code == "NotImplemented":
            return ConfigurationError(
                f"{endpoint} does not implement conditional writes (If-None-Match, If-Match), which a store "
                "needs; use another server, or another version of this one"
            )
        if status == 409 or status == 429 or code in _BUSY or status == 503:
            return Contended(f"{url} was too busy to write {key} ({code or status}); run again")
        if status >= 500 and code not in _FULL and status != 507:
            return AnswerLost(f"{url} failed while writing {key} ({code or status})")
    elif isinstance(error, boto.HTTPClientError) and not isinstance(error, _NOT_SENT):
        return AnswerLost(f"{endpoint} did not answer the write of {key} ({type(error).__name__})")
    return translate(error, "write", key, url, endpoint)


def certainly_not_done(error: Exception) -> bool:
    """Tell whether a request that must arrive once at most can be sent again after `error`.

    A 503 must carry S3's own code: gateways say it, too, when they lose a request that they had passed on.
    """
    if isinstance(error, boto.ClientError):
        return status_of(error) == 429 or error.response.get("Error", {}).get("Code", "") in _BUSY
    # TLS can fail in the answer as well.
    return isinstance(error, _NOT_SENT) and not isinstance(error, boto.SSLError)


def _answered(error: boto.ClientError, where: str, key: str, url: str, endpoint: str) -> CellarError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = status_of(error)
    if code == "NoSuchBucket":
        return BucketMissing(
            f"cannot {where}: that bucket does not exist at {endpoint}; create it or fix the URL"
        )
    if code in ("NoSuchKey", "404", "NotFound") or status == 404:
        return KeyMissing(f"{key} does not exist in {url}; check the store with `cellar verify`")
    if code in _REJECTED_CREDENTIALS or status == 401:
        return CredentialsError(
            f"cannot {where}: {endpoint} rejects the credentials ({code}); renew or replace them"
        )
    if code == "RequestTimeTooSkewed":
        return ConfigurationError(
            f"cannot {where}: this machine's clock and that of {endpoint} differ by more than 15 minutes; "
            "set the wrong one right"
        )
    if code in _WRONG_REGION or status == 301:
        return ConfigurationError(
            f"cannot {where}: the bucket is in another region ({code}); set AWS_DEFAULT_REGION"
        )
    if code in _DAMAGED_UPLOAD:
        return IntegrityError(f"cannot {where}: the bytes were damaged on their way ({code}); run again")
    if code in _FULL or status == 507:
        return DiskFull(
            f"cannot {where}: the storage is full ({code or status}); free some space and run again"
        )
    if status == 403:
        return AccessDenied(
            f"cannot {where}: access is denied ({code}); ask for this permission or use other credentials"
        )
    return StorageUnavailable(f"cannot {where}: {endpoint} answered {code or status}; run again later")
