"""System checks of the deployment: mistakes that no single variable shows."""

import os
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Tags, register


@register(Tags.security)
def production_is_closed(**_kwargs: Any) -> list[CheckMessage]:
    """Return what leaves a production site open: debug pages, or any host name."""
    if settings.DEVELOPMENT:
        return []
    found: list[CheckMessage] = []
    if settings.DEBUG:
        found.append(
            checks.Error(
                "DEBUG is on in production: error pages show settings and source.",
                hint="Set DEBUG=false, or ENVIRONMENT=development on your own machine.",
                id="ragsite.E001",
            )
        )
    if "*" in settings.ALLOWED_HOSTS:
        found.append(
            checks.Warning(
                "ALLOWED_HOSTS admits every host name, so links can be forged with a Host header.",
                hint="List the host names of the site.",
                id="ragsite.W001",
            )
        )
    return found


@register(Tags.security, deploy=True)
def https_is_recognised(**_kwargs: Any) -> list[CheckMessage]:
    """Return a warning where redirecting to HTTPS is off without a proxy that could do it."""
    if settings.DEVELOPMENT or settings.SECURE_SSL_REDIRECT or settings.PROXY_COUNT:
        return []
    return [
        checks.Warning(
            "Plain HTTP is served and no proxy is declared: tokens travel in clear text.",
            hint="Set SECURE_SSL_REDIRECT=true, or PROXY_COUNT to the number of proxies in front.",
            id="ragsite.W002",
        )
    ]


@register(Tags.security, deploy=True)
def owner_is_elsewhere(**_kwargs: Any) -> list[CheckMessage]:
    """Return a warning where the web application is told how to write the index."""
    if settings.DEVELOPMENT or not os.environ.get("INDEX_OWNER_URL"):
        return []
    return [
        checks.Warning(
            "INDEX_OWNER_URL is set: whoever gets into this process can change the index.",
            hint="Set it for the owner's commands alone, in an environment of their own.",
            id="ragsite.W003",
        )
    ]
