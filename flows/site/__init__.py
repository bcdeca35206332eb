"""A static site of what a store holds: pages that need no server, no network and no build step."""

from flows.site.build import SiteOptions, SiteReport, build_site
from flows.site.sections import MOST_RUNS

__all__ = ["MOST_RUNS", "SiteOptions", "SiteReport", "build_site"]
