"""One secret of each known form or name, and texts that only resemble secrets.

All are made here: none has ever opened anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import string
from typing import Any

_UPPER = string.ascii_uppercase + string.digits
_ANY = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def _letters(count: int, among: str = _ANY) -> str:
    digest = hashlib.shake_256(f"{count} of {among}".encode()).digest(count)
    return "".join(among[number % len(among)] for number in digest)


def _in_base64(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _key(begin: str, count: int, among: str = _ANY) -> tuple[str, str]:
    key = begin + _letters(count, among)
    return f"use {key} for it", key


def _in(words: str, secret: str) -> tuple[str, str]:
    return words.format(secret), secret


JWT = f"{_in_base64({'alg': 'HS256', 'typ': 'JWT'})}.{_in_base64({'sub': '42', 'name': 'Ann'})}.{_letters(43)}"
PEM = "-----BEGIN {0} PRIVATE KEY-----\n{1}\n-----END {0} PRIVATE KEY-----"

KINDS: dict[str, tuple[str, str]] = {
    "openai": _key("sk-", 48),
    "openai project": _key("sk-proj-", 40),
    "anthropic": _key("sk-ant-api03-", 60),
    "aws id": _key("AKIA", 16, _UPPER),
    "aws passing id": _key("ASIA", 16, _UPPER),
    "aws key": _in("aws_secret_access_key = {}", _letters(40, _ANY + "/+")),
    "aws session": _in("AWS_SESSION_TOKEN={}", _letters(120)),
    "aws signature": _in("https://b.s3.amazonaws.com/k?X-Amz-Signature={}&X-Amz-Expires=9", _letters(64, _HEX)),
    "github": _key("ghp_", 36),
    "github server": _key("ghs_", 36),
    "github fine": _key("github_pat_", 59),
    "gitlab": _key("glpat-", 20),
    "slack bot": _key("xoxb-1234-", 24),
    "slack app": _key("xapp-1-", 40),
    "slack hook": _in("https://hooks.slack.com/services/{}", f"T{_letters(8)}/B{_letters(8)}/{_letters(24)}"),
    "stripe": _key("sk_live_", 24),
    "stripe test": _key("sk_test_", 24),
    "stripe restricted": _key("rk_live_", 24),
    "stripe hook": _key("whsec_", 32),
    "google": _key("AIza", 35),
    "google access": _key("ya29.", 60),
    "google client": _key("GOCSPX-", 28),
    "azure storage": _in("AccountName=x;AccountKey={};EndpointSuffix=core.windows.net", _letters(86) + "=="),
    "azure signature": _in("https://x.blob.core.windows.net/c?sv=2022&sig={}&se=2030", _letters(43)),
    "azure client": _key("abc8Q~", 34),
    "hugging face": _key("hf_", 34),
    "npm": _key("npm_", 36),
    "pypi": _key("pypi-AgE", 60),
    "sendgrid": _key(f"SG.{_letters(22)}.", 43),
    "databricks": _key("dapi", 32, _HEX),
    "digital ocean": _key("dop_v1_", 64, _HEX),
    "shopify": _key("shpat_", 32, _HEX),
    "mailgun": _key("key-", 32, _HEX),
    "vault": _key("hvs.", 24),
    "encrypted web token": _in(
        "it is {}.", f"{_in_base64({'alg': 'dir', 'enc': 'A128'})}..{'.'.join([_letters(22)] * 3)}"
    ),
    "groq": _key("gsk_", 40),
    "perplexity": _key("pplx-", 40),
    "linear": _key("lin_api_", 40),
    "atlassian": _key("ATATT3", 60),
    "age": _key("AGE-SECRET-KEY-1", 58, _UPPER),
    "discord hook": _in("https://discord.com/api/webhooks/{}", f"123456789/{_letters(60)}"),
    "aws token in a URL": _in("https://b.s3.amazonaws.com/k?X-Amz-Security-Token={}&x=1", _letters(80)),
    "curl, long": _in("curl --user=admin:{} https://x.example", "Hunter2pass"),
    "telegram": _in("123456789:{}", "AA" + _letters(33)),
    "json web token": _in("it is {}.", JWT),
    "bearer": _in("Authorization: Bearer {}", JWT),
    "bearer of any kind": _in("bearer {}", _letters(32)),
    "basic": _in("Authorization: Basic {}", "dXNlcjpwYXNzd29yZDE="),
    "basic alone": _in("it says basic {} there", "dXNlcjpwYXNzd29yZDI="),
    "header": _in("X-Api-Key: {}", _letters(32, _HEX)),
    "cookie": _in("Cookie: theme=dark; sessionid={}; more=1", "38afes7a8"),
    "set-cookie": _in("Set-Cookie: PHPSESSID={}; path=/", "298zf09hf012fh2"),
    "curl": _in("curl -u admin:{} https://x.example", "Hunter2pass"),
    "url": _in("postgres://app:{}@db.example:5432/x", "hunter2secret"),
    "url without a name": _in("redis://:{}@cache:6379/0", "s3cr3t-of-it"),
    "url, odd letters": _in("mysql://root:{}@10.0.0.1/db", "p@ss/w#rd!,x:1"),
    "connection string": _in("Server=db;User Id=sa;Password={};Encrypt=true", "Str0ng!Pass"),
    "pem": _in(PEM.replace("{1}", "{}").replace("{0}", "RSA"), "MIIEowIBAAKCAQEA"),
    "openssh": _in(PEM.replace("{1}", "{}").replace("{0}", "OPENSSH"), "b3BlbnNzaC1rZXktdjEA"),
    "pgp": _in("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{}\n-----END PGP PRIVATE KEY BLOCK-----", "lQOYBFx7Kk0BCAC"),
    "element": _in("<db><password>{}</password></db>", "Winter-in-Rome"),
    "line of yaml": _in("db:\n  password: {}\n", "Winter-in-Rome"),
    "variable": _in("export DB_PASSWORD='{}'", "Winter in Rome"),
    "table": _in("| password | {} |", "W1nter2024"),
    "german": _in("Das Kennwort: {}", "Winter-in-Rome"),
    "chinese": _in("密码：{}", "Winter-in-Rome"),
    "one-time": _in("OTP: {} now", "482913"),
}

ORDINARY = [
    "sha1 da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "md5 d41d8cd98f00b204e9800998ecf8427e",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    'ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "id 550e8400-e29b-41d4-a716-446655440000",
    "order 4711-0815-2024, invoice INV-2024-000123, sku AB-1234-XY",
    "IBAN DE89 3704 0044 0532 0130 00",
    "card 4111 1111 1111 1111",
    "ISBN 978-3-16-148410-0, VIN 1HGCM82633A004352, parcel 1Z999AA10123456784",
    "+49 151 23456789, ann@example.com, 52.5200, 13.4050",
    "https://example.com:8080/path/@scope/pkg?id=12&sort=asc",
    "http://localhost:8080/@vite/client",
    "https://a.example/c?signal=ok&design=new",
    "git@github.com:user/repo.git",
    "npm_config_registry, hf_hub_download and task-queue-worker-pool-size",
    "arn:aws:iam::123456789012:role/x in s3://bucket/key/2024/01/file.parquet",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7",
    "Bearer certificates need a basic understanding, or Basic internationalization",
    "Cookie: chocolate chip. cookies: accepted",
    "The secret to success is patience; the secretary: Bob",
    "password must have 8 characters; passwords: 3 failed",
    "primary key: id, max_tokens: 500, token count: 1234, key: A minor",
    "login: 2024-11-22, session: 2024-11-22T07:00:00Z, pin: 10:15",
    "monkey=banana1, keyboard: qwertz105, tokenizer=bpe2048, sid_length: 12, author: Bob42",
    "| key | value |\n| password | role |",
    "skeleton-key-of-the-house and risk-assessment-document-v2",
]
"""What a repair must see: none of it opens anything by itself, and all of it is asked for in forms."""
