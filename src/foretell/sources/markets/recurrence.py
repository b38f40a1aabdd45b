"""Telling repeated formats by their titles, for platforms that do not name a series."""

import re

MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?)"
LATE_MONTH = r"(?:nov(?:ember)?|dec(?:ember)?|may(?=\W+\d)|(?<=\d )may)"
DAY = r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)day"
NUMBER = r"[-+]?[$€£]?\d[\d,.:]*(?:st|nd|rd|th|k|m|bn?|t|bps?|%|°[cf]?|am|pm|c|f)*"
VARYING = re.compile(rf"\b{MONTH}\b\.?|\b{LATE_MONTH}\b\.?|\b{DAY}\b|(?<!\w){NUMBER}(?!\w)")


def template(title: str) -> str:
    """What stays of a title when its dates and numbers are taken out, so that repeated formats look alike.

    >>> template("Bitcoin above $120,000 on October 11, 2026?")
    'bitcoin above # on #?'
    >>> template("Bitcoin above $95k on May 3?")
    'bitcoin above # on #?'
    """
    bare = VARYING.sub("#", " ".join(title.casefold().split()))
    return re.sub(r"#(?:[\s,/–-]*#)+", "#", bare)
