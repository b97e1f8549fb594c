"""Firefox without a window, driven by Mozilla's marionette_driver: what tests of pages ask of it.

Scripts in the browser's own context set what a page sees as its window's width, colour scheme and medium,
and hear what assistive technologies are told. The viewer that is part of Firefox reads the text of a PDF.
"""

import base64
import contextlib
import time

from browsers import find_firefox, package

# Seconds: for a busy machine, on which a start takes a minute.
PATIENCE = 300
KEYS = {
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Shift": "\ue008",
    "Escape": "\ue00c",
    "End": "\ue010",
    "Home": "\ue011",
    "Left": "\ue012",
    "Up": "\ue013",
    "Right": "\ue014",
    "Down": "\ue015",
    "Space": " ",
}
SCHEMES = {"dark": 0, "light": 1}

WIDTH = """
  const {style} = gBrowser.selectedBrowser;
  Object.assign(style, {width: arguments[0] + "px", minWidth: "0", flex: "none"});"""
MEDIUM = "gBrowser.selectedBrowser.browsingContext.mediumOverride = arguments[0];"

# Of pages, not of the browser itself; errors that nothing caught do not pass through the console's methods.
MESSAGES = """
  const {classes, interfaces} = Components;
  const found = [];
  const errors = classes["@mozilla.org/consoleservice;1"].getService(interfaces.nsIConsoleService);
  for (const one of errors.getMessageArray()) {
    if (!(one instanceof interfaces.nsIScriptError) || !one.sourceName.startsWith("file:")) continue;
    found.push([one.flags & interfaces.nsIScriptError.warningFlag ? "warn" : "error", one.errorMessage]);
  }
  errors.reset();
  const said = classes["@mozilla.org/consoleAPI-storage;1"].getService(interfaces.nsIConsoleAPIStorage);
  for (const one of said.getEvents()) {
    if (one.filename.startsWith("file:")) found.push([one.level, [...one.arguments].map(String).join(" ")]);
  }
  said.clearEvents();
  return found;"""

LISTEN = """
  const {classes, interfaces} = Components;
  classes["@mozilla.org/accessibilityService;1"].getService(interfaces.nsIAccessibilityService);
  const {EVENT_SHOW, EVENT_TEXT_INSERTED} = interfaces.nsIAccessibleEvent;
  const children = one => Array.from({length: one.childCount}, (_, at) => one.getChildAt(at));
  const words = one => (one.childCount ? children(one).map(words).join(" ") : (one.name ?? ""));
  window.announced = [];
  window.listener = {
    observe(subject) {
      const {accessible, eventType} = subject.QueryInterface(interfaces.nsIAccessibleEvent);
      if (![EVENT_SHOW, EVENT_TEXT_INSERTED].includes(eventType)) return;
      let live = "off";
      try {
        live = accessible.attributes.getStringProperty("container-live");
      } catch {}  // not in a live region
      if (live === "off") return;
      const inserted = () => subject.QueryInterface(interfaces.nsIAccessibleTextChangeEvent).modifiedText;
      window.announced.push(eventType === EVENT_SHOW ? words(accessible) : inserted());
    },
  };
  Services.obs.addObserver(window.listener, "accessible-event");"""

PDF_TEXT = """
  const done = arguments[arguments.length - 1];
  const viewer = window.PDFViewerApplication;
  (async () => {
    await viewer.initializedPromise;
    while (!viewer.pdfDocument) await new Promise(resolve => setTimeout(resolve, 50));
    const pages = [];
    for (let number = 1; number <= viewer.pdfDocument.numPages; number++) {
      const {items} = await (await viewer.pdfDocument.getPage(number)).getTextContent();
      pages.push(items.map(item => item.str).join(" "));
    }
    return pages;
  })().then(done, error => done(`${error}`));"""


@contextlib.contextmanager
def firefox(folder):
    """A `Firefox`; its log and its downloads are in `folder`."""
    downloads = folder / "downloads"
    downloads.mkdir()
    marionette = package("marionette_driver.marionette").Marionette(
        app="fxdesktop",
        bin=find_firefox(),
        port=0,  # any that is free
        headless=True,
        prefs={
            "browser.download.alwaysOpenPanel": False,  # the panel takes the keys
            "browser.download.dir": str(downloads),
            "browser.download.folderList": 2,
            "browser.download.useDownloadDir": True,
        },
        gecko_log=str(folder / "firefox.log"),
        workspace=str(folder),  # of the profile
        startup_timeout=PATIENCE,
    )
    try:
        marionette.start_session()
        marionette.timeout.script = marionette.timeout.page_load = PATIENCE
        marionette.set_window_rect(width=1400, height=1000)
        yield Firefox(marionette, downloads)
        marionette.quit()
    finally:
        profile = marionette.instance.profile
        marionette.cleanup()
        # In place of the profile that it deletes, it makes another one. Both would delete again when Python
        # ends, too late for their imports.
        for one in (profile, marionette.instance.profile):
            one.cleanup()
            one.restore = False


def opening(browser, address, quiet=()):
    """Of a fixture: yields a function that opens address(name), with options; at the end, nothing may have
    been said on the console, but for these levels, or asked of anything outside of the disk."""
    said, asked = [], []

    def look():
        said.extend(message for message in browser.messages() if message[0] not in quiet)
        asked.extend(browser.asked())

    def open_page(*name, **options):
        look()
        browser.open(address(*name), **options)
        return browser

    browser.open("about:blank")
    yield open_page
    look()
    assert said == [] and asked == [], (said, asked)


class Firefox:
    """One tab. Selectors are CSS selectors."""

    def __init__(self, marionette, downloads):
        self.marionette = marionette
        self.downloads = downloads
        self.heard = []
        self._chrome(LISTEN)

    def _chrome(self, script, *arguments):
        with self.marionette.using_context("chrome"):
            return self.marionette.execute_script(script, arguments, sandbox=None)

    def open(self, url, width=1280, scheme="light"):
        """Open a page; what was said before is forgotten."""
        self.set_scheme(scheme)
        self.set_width(width)
        # A change of the fragment alone loads nothing.
        self.marionette.navigate("about:blank")
        self.messages()
        self.hear()
        self.heard.clear()
        self.marionette.navigate(url)

    def set_width(self, width):
        self._chrome(WIDTH, width)
        self.wait("return innerWidth === arguments[0]", width)

    def set_scheme(self, scheme):
        """ "light" or "dark"."""
        self.marionette.set_pref("layout.css.prefers-color-scheme.content-override", SCHEMES[scheme])
        self.wait("return matchMedia(`(prefers-color-scheme: ${arguments[0]})`).matches", scheme)

    def set_medium(self, medium):
        """ "print", or "" for the screen; until the next page is opened."""
        self._chrome(MEDIUM, medium)
        self.wait("return matchMedia('print').matches === arguments[0]", medium == "print")

    def script(self, body, *arguments):
        """What JavaScript returns; it sees the page's globals, and `all`: selector -> elements."""
        body = "const all = selector => [...document.querySelectorAll(selector)];\n" + body
        return self.marionette.execute_script(body, arguments, sandbox=None)

    def wait(self, body, *arguments):
        """Until JavaScript returns something true."""
        end = time.monotonic() + PATIENCE
        while not self.script(body, *arguments):
            assert time.monotonic() < end, f"never true: {body}"
            time.sleep(0.02)

    def find(self, selector):
        return self.marionette.find_element("css selector", selector)

    def press(self, *keys):
        """Press and release each: a name of KEYS, or a letter; "Shift+Tab" holds the first."""
        sequence = self.marionette.actions.sequence("key", "keyboard")
        for key in keys:
            *held, last = (KEYS.get(name, name) for name in key.split("+"))
            for one in held:
                sequence.key_down(one)
            sequence.key_down(last).key_up(last)
            for one in held:
                sequence.key_up(one)
        sequence.perform()

    def tab_to(self, selector, most=200):
        """Press Tab until the element has the focus."""
        for _ in range(most):
            self.press("Tab")
            if self.script("return document.activeElement.matches(arguments[0])", selector):
                return
        raise AssertionError(f"Tab does not lead to {selector}")

    def told(self, selector):
        """(role, name) of an element, as screen readers are told."""
        element = self.find(selector)
        return element.computed_role, element.computed_label

    def focused(self):
        """(role, name, description) of what has the focus."""
        found = self.marionette.get_active_element().accessibility_properties
        return found["role"], found["label"], found["description"]

    def hear(self):
        """All that live regions of the page have announced."""
        self.heard += self._chrome("return window.announced.splice(0)")
        return self.heard

    def announced(self, words):
        """Wait until a live region has announced a text with these words."""
        end = time.monotonic() + PATIENCE
        while not any(words in text for text in self.hear()):
            assert time.monotonic() < end, f"not announced: {words}; {self.heard}"
            time.sleep(0.02)

    def messages(self):
        """(level, words) of errors, warnings and words on the console, of pages since the last call."""
        return self.marionette.execute_script(MESSAGES, sandbox="system")

    def asked(self):
        """Addresses outside of the disk that the page asked for."""
        names = self.script("return performance.getEntriesByType('resource').map(one => one.name)")
        return [name for name in names if not name.startswith(("file:", "data:", "blob:"))]

    def printed(self, path):
        """Print to a PDF file; the text of its pages. Leads away from the page."""
        page = self.marionette._send_message("WebDriver:Print", {"background": True}, key="value")
        path.write_bytes(base64.b64decode(page))
        self.marionette.navigate(path.as_uri())
        pages = self.marionette.execute_async_script(PDF_TEXT, sandbox=None)
        assert isinstance(pages, list), pages
        return pages

    def downloaded(self, name):
        """The bytes of a file, once it is there."""
        end = time.monotonic() + PATIENCE
        path, part = self.downloads / name, self.downloads / f"{name}.part"
        while not path.exists() or part.exists() or not path.stat().st_size:
            assert time.monotonic() < end, f"not downloaded: {name}; {list(self.downloads.iterdir())}"
            time.sleep(0.02)
        return path.read_bytes()
