"""Who is asking, by token. Sessions are REST framework's own."""

from typing import Any

from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request


class TokenAuthentication(KnoxTokenAuthentication):  # type: ignore[misc]  # knox has no types
    """`Authorization: Token …`, hashed in the database and expiring."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        """Return the user and the token's record, None without a token.

        Raises AuthenticationFailed, also for `Bearer`: the most common other scheme would else be
        told that nothing was sent.
        """
        if get_authorization_header(request)[:7].lower() == b"bearer ":
            raise AuthenticationFailed("Write 'Authorization: Token …' instead of 'Bearer'.")
        found: tuple[Any, Any] | None = super().authenticate(request)
        return found

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        """Return the user and the token's record.

        Raises AuthenticationFailed; also where knox would stumble over bytes that no token has.
        """
        if not token.isalnum() or not token.isascii():
            raise AuthenticationFailed("Invalid token.")
        user, record = super().authenticate_credentials(token)
        return user, record
