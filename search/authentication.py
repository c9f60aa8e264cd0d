"""Who is asking, by token. Sessions are REST framework's own."""

from typing import Any

from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.exceptions import AuthenticationFailed


class TokenAuthentication(KnoxTokenAuthentication):  # type: ignore[misc]  # knox has no types
    """`Authorization: Token …`, hashed in the database and expiring."""

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        """Return the user and the token's record.

        Raises AuthenticationFailed; also where knox would stumble over bytes that no token has.
        """
        if not token.isalnum() or not token.isascii():
            raise AuthenticationFailed("Invalid token.")
        user, record = super().authenticate_credentials(token)
        return user, record
