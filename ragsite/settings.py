"""Settings of the project, all from the environment; `.env.example` lists the variables.

Importing this module starts nothing and connects to nothing.
"""

import logging
from datetime import timedelta
from typing import Any

from csp.constants import NONE, SELF

from ragsite import logs
from ragsite.databases import BASE_DIR, PLACEHOLDER_URL, database, read_dotenv, read_only
from ragsite.environment import Environment, development_secret_key

read_dotenv()
env = Environment()
DEVELOPMENT = env.is_development

# --- What production must say and development may leave out --------------------------------------

if DEVELOPMENT:
    DEBUG = env.read.bool("DEBUG", True)
    SECRET_KEY = env.read.str("SECRET_KEY", "") or development_secret_key(
        BASE_DIR / "var" / "secret_key"
    )
    ALLOWED_HOSTS = env.read.list("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
else:
    DEBUG = env.read.bool("DEBUG", False)
    SECRET_KEY = env.read.str("SECRET_KEY", "")
    ALLOWED_HOSTS = env.read.list("ALLOWED_HOSTS", [])

# Connections that each process may hold to each database.
_pool_size = env.positive("DB_POOL_SIZE", 8)
# A missing URL is a mistake in production; development gets one from manage.py.
_default_url = env.read.str("DATABASE_URL", "") or PLACEHOLDER_URL
_index_url = env.read.str("INDEX_DATABASE_URL", "") or PLACEHOLDER_URL

DATABASES: dict[str, dict[str, Any]] = {
    "default": env.database(
        "DATABASE_URL", _default_url, lambda url: database(url, pool_size=_pool_size or 1)
    ),
    "index": env.database(
        "INDEX_DATABASE_URL",
        _index_url,
        lambda url: read_only(database(url, pool_size=_pool_size or 1)),
    ),
}
DATABASE_ROUTERS = ["ingest_readonly.routers.IndexRouter"]
# What the index must have been built with, for the mirror's system check.
INDEX_EXPECTATIONS = "search.embedding.expectations"

# Reverse proxies in front of the application. With one or more, the client's address and whether
# it came by HTTPS are read from the headers that the nearest proxy sets; with none, headers that
# anybody can send are ignored.
PROXY_COUNT = env.read.int("PROXY_COUNT", 0)
_token_ttl_hours = env.positive("TOKEN_TTL_HOURS", 24 * 30)
_user_rate = env.rate("THROTTLE_USER", "120/min")
_anonymous_rate = env.rate("THROTTLE_ANONYMOUS", "20/min")
_ssl = env.read.bool("SECURE_SSL_REDIRECT", not DEVELOPMENT)
_hsts_seconds = env.read.int("SECURE_HSTS_SECONDS", 0 if DEVELOPMENT else 365 * 24 * 3600)
_hsts_subdomains = env.read.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", False)
_hsts_preload = env.read.bool("SECURE_HSTS_PRELOAD", False)
CSRF_TRUSTED_ORIGINS: list[str] = env.read.list("CSRF_TRUSTED_ORIGINS", [])
LOG_LEVEL = env.read.log_level("LOG_LEVEL", logging.INFO)

# The settings of the search, by the table of `search.conf`.
globals().update(env.search_settings())

env.seal()

# --- Application ---------------------------------------------------------------------------------

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "pgvector.django",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "drf_standardized_errors",
    "axes",
    "csp",
    "health_check",
    "django_prometheus",
    "django_structlog",
    "ragsite",
    "ingest_readonly",
    "search",
    "indexer",
]

MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "ragsite.logs.RequestMiddleware",
    # Last, as its documentation asks: it turns a refused login into an answer.
    "axes.middleware.AxesMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]

ROOT_URLCONF = "ragsite.urls"
WSGI_APPLICATION = "ragsite.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "var" / "static"
_static = "django.contrib.staticfiles.storage.StaticFilesStorage"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": _static
        if DEVELOPMENT
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

LOGGING_CONFIG = "logging.config.dictConfig"
LOGGING = logs.configure(as_json=not DEVELOPMENT, level=LOG_LEVEL)
# One line a request is enough: the one at its end.
DJANGO_STRUCTLOG_STATUS_START_LOG_LEVEL = logging.DEBUG

# --- Login and tokens ----------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "admin:login"

# After five failures an address may not try again for a quarter of an hour. By address alone: a
# lock on names would let anybody lock an administrator out.
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = ["ip_address"]
AXES_CLIENT_IP_CALLABLE = "ragsite.logs.client_address"
AXES_VERBOSE = False  # or each command begins with its banner

REST_KNOX = {"TOKEN_TTL": timedelta(hours=_token_ttl_hours), "AUTO_REFRESH": False}

# --- What browsers are told ----------------------------------------------------------------------

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = _ssl
# Probes come from inside, by plain HTTP.
SECURE_REDIRECT_EXEMPT = [r"^health(/ready)?$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PROXY_COUNT else None
SECURE_HSTS_SECONDS = _hsts_seconds
SECURE_HSTS_INCLUDE_SUBDOMAINS = _hsts_subdomains
SECURE_HSTS_PRELOAD = _hsts_preload
SESSION_COOKIE_SECURE = not DEVELOPMENT
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_SECURE = not DEVELOPMENT
CSRF_COOKIE_HTTPONLY = True
# HSTS for sub-domains and preloading bind hosts that this application knows nothing of: whoever
# owns the domain decides.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# --- REST ----------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "search.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    # Counted in the cache, which by default each process has for itself.
    "DEFAULT_THROTTLE_CLASSES": [
        "rest_framework.throttling.UserRateThrottle",
        "rest_framework.throttling.AnonRateThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {"user": _user_rate, "anon": _anonymous_rate},
    "NUM_PROXIES": PROXY_COUNT,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "drf_standardized_errors.handler.exception_handler",
    # `?format=` would be a parameter that no view knows.
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}

DRF_STANDARDIZED_ERRORS = {"EXCEPTION_HANDLER_CLASS": "search.views.ExceptionHandler"}

SPECTACULAR_SETTINGS = {
    "TITLE": "Entity-collapsing search over indexed GitHub history",
    "DESCRIPTION": "Search issues, pull requests, comments, reviews, releases, documents, wiki "
    "pages and diffs. Each result is a distinct entity; rows that point at the same thing are "
    "folded into one.",
    "VERSION": "1.0.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    # The words of our choices explain themselves or are explained in the help text.
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # Nothing is sent to a validator on another host.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None},
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "search.schema.refine",
    ],
    "ENUM_NAME_OVERRIDES": {
        "RowTypeEnum": "search.types.ROW_TYPES",
        "RowTypeFilterEnum": "search.types.TYPE_FILTERS",
        "FusionEnum": "search.types.FUSIONS",
        "SortEnum": "search.types.SORTS",
        "StateFilterEnum": "search.types.STATE_FILTERS",
    },
}
