"""A static site of what a store holds: pages that need no server, no network and no build step."""

from flows.site.build import SiteOptions, SiteReport, build_site

__all__ = ["SiteOptions", "SiteReport", "build_site"]
