//! Records the events that the browser sends: console, errors, requests, dialogs, page loading.
//!
//! Every list has a maximum length; entries beyond it are only counted. Some events block the page
//! until this process reacts. It accepts the dialog that asks whether to leave the page, dismisses
//! all other dialogs, and closes windows that the page opens.

use super::events::{self, Console, PageError, PhpError, Request, cut, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of entries of each list of events.
const ENTRIES: usize = 1000;
/// Maximum number of document loads whose stages are remembered; beyond it, all earlier ones are
/// forgotten.
const LOADS: usize = 256;
/// Maximum number of faults of each kind that are listed.
const FAULTS: usize = 50;
/// Maximum number of rows of each list, e.g. of console lines, that the result contains.
const SHOWN: usize = 50;
/// Maximum number of dialogs listed.
const DIALOGS: usize = 20;

/// A list with a maximum length; entries beyond it are counted, but not stored.
#[derive(Debug, Clone)]
pub struct Bounded<T> {
    pub kept: Vec<T>,
    /// Number of all entries, including those not stored.
    pub total: u64,
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            total: 0,
        }
    }
}

impl<T> Bounded<T> {
    /// Returns the first entry after the first `number` ones, if there is any; if it is not stored, the
    /// last stored one.
    pub(super) fn after(&self, number: u64) -> Option<&T> {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let found = self.kept.get(at).or(self.kept.last());
        found.filter(|_| self.total > number)
    }

    fn push(&mut self, entry: T, most: usize) {
        self.total += 1;
        if self.kept.len() < most {
            self.kept.push(entry);
        }
    }
}

/// Request that must be sent to the browser at once in reaction to an event: answers a dialog,
/// which blocks the page, or closes a window.
#[derive(Debug, PartialEq)]
pub(super) struct Reaction {
    pub method: &'static str,
    pub params: Value,
    /// Whether the request goes to the page instead of the browser itself.
    pub of_page: bool,
}

/// Load state of one page.
#[derive(Debug, Default)]
pub(super) struct Tab {
    /// Data of a drag that the browser has reported instead of performing it.
    pub dragged: Option<Value>,
    /// Whether the page is navigating.
    pub loading: bool,
    /// The browser's target id of the page under test.
    pub target: String,
    /// The browser's frame id of the page's main frame.
    pub frame: String,
    /// Load stages that each document load of the main frame has reached, by loader id. The stages
    /// are `DOMContentLoaded`, `load` and `networkIdle`.
    pub loads: BTreeMap<String, BTreeSet<String>>,
    /// The browser's loader id of the document that the main frame shows.
    pub current: String,
    /// Number of navigations of the main frame so far.
    pub navigations: u64,
    /// HTTP status of the last document that the main frame loaded.
    pub status: Option<u64>,
}

/// Events that fail a command, apart from the lists of all events, whose maximum length a page can
/// reach before.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Documents of main frames with a status from 500: URL and status.
    pub documents: Bounded<(String, u64)>,
    /// Errors that ended PHP in a request.
    pub php: Bounded<PhpError>,
    /// Exceptions of scripts that nothing caught.
    pub exceptions: Bounded<PageError>,
    /// How many of each list were judged.
    pub judged: Judged,
}

/// Number of faults of each kind that were judged.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Judged {
    pub documents: u64,
    pub php: u64,
    pub exceptions: u64,
}

/// Events of the page since its start.
#[derive(Debug, Default)]
pub struct Observed {
    pub console: Bounded<Console>,
    pub errors: Bounded<PageError>,
    /// Messages of PHP in requests of the page.
    pub php: Bounded<PhpError>,
    pub(super) faults: Faults,
    pub requests: Bounded<Request>,
    /// Web sockets of the page: opened, closed, and direction and size of each message.
    pub sockets: Bounded<Value>,
    /// Number of events that the browser has sent.
    pub(super) events: u64,
    pub dialogs: Bounded<Value>,
    /// Number of windows that the page opened; this process closed each.
    pub windows: u64,
    /// Number of downloads that the page started; each was refused.
    pub downloads: u64,
    /// Number of browser messages that were dropped because they were too long, had too many JSON
    /// values or were not a JSON object.
    pub dropped: u64,
    pub crashed: bool,
    /// State of the page to which requests are sent.
    pub(super) tab: Tab,
    /// Target id of the command's own page.
    pub(super) first: String,
    /// Browser contexts of actors by id, with the target id of the actor's page once it exists.
    pub(super) contexts: BTreeMap<String, Option<String>>,
    /// Requests that have not ended yet, by request id, with the index in `requests` if stored
    /// there.
    pub(super) open: BTreeMap<String, Option<usize>>,
    /// Hosts that the page sent requests to, up to a maximum number.
    pub hosts: BTreeSet<String>,
}

impl Observed {
    /// Returns whether the document load with this loader id has reached this stage.
    pub(super) fn reached(&self, loader: &str, stage: &str) -> bool {
        self.tab
            .loads
            .get(loader)
            .is_some_and(|seen| seen.contains(stage))
    }

    /// Returns the recorded events of the page as the result of the command shows them.
    pub(super) fn document(&self) -> Value {
        let (denied, requests): (Vec<_>, Vec<_>) =
            self.requests.kept.iter().partition(|r| r.denied);
        let failed: Vec<_> = requests
            .into_iter()
            .filter(|r| r.error.is_some() || r.status.is_some_and(|status| status >= 400))
            .collect();
        json!({
            "httpStatus": self.tab.status,
            "console": first(&self.console.kept),
            "consoleTotal": self.console.total,
            "errors": first(&self.errors.kept),
            "errorsTotal": self.errors.total,
            "phpErrors": first(&self.php.kept),
            "phpErrorsTotal": self.php.total,
            "network": first(&self.requests.kept),
            "networkTotal": self.requests.total,
            "networkFailed": first(&failed),
            "denied": first(&denied),
            "websockets": first(&self.sockets.kept),
            "websocketsTotal": self.sockets.total,
            "dialogs": first(&self.dialogs.kept),
            "dialogsTotal": self.dialogs.total,
            "windowsClosed": self.windows,
            "downloadsRefused": self.downloads,
            "eventsDropped": self.dropped,
        })
    }

    /// Records a message of PHP.
    pub(super) fn php_error(&mut self, error: &PhpError) {
        let error = error.cut();
        if error.is_fatal() {
            self.faults.php.push(error.clone(), FAULTS);
        }
        self.php.push(error, ENTRIES);
    }

    /// Records an event of the browser; returns the request that must be sent in reaction, if any.
    /// `refuses` tells whether the network policy refuses a method and URL.
    pub(super) fn take(
        &mut self,
        message: &Value,
        refuses: &dyn Fn(&str, &str) -> bool,
    ) -> Option<Reaction> {
        let method = message.get("method")?.as_str()?;
        let params = message.get("params").unwrap_or(&Value::Null);
        self.events += 1;
        match method {
            "Runtime.consoleAPICalled" => self.console.push(events::console(params), ENTRIES),
            "Runtime.exceptionThrown" => {
                let error = events::exception(params);
                self.faults.exceptions.push(error.clone(), FAULTS);
                self.errors.push(error, ENTRIES);
            }
            "Log.entryAdded" => {
                if let Some(error) = events::log_error(params)
                    && !self.is_denial(&error, text(params, "/entry/url"), refuses)
                {
                    self.errors.push(error, ENTRIES);
                }
            }
            "Network.requestWillBeSent" => self.request(params, refuses),
            "Network.responseReceived" => self.response(params),
            "Network.loadingFinished" => self.finished(params, None),
            "Network.loadingFailed" => self.finished(params, Some(text(params, "/errorText"))),
            "Network.webSocketCreated"
            | "Network.webSocketFrameSent"
            | "Network.webSocketFrameReceived"
            | "Network.webSocketFrameError"
            | "Network.webSocketClosed" => self.socket(method, params),
            "Input.dragIntercepted" => self.tab.dragged = params.get("data").cloned(),
            "Page.lifecycleEvent" => self.lifecycle(params),
            "Page.frameNavigated" if text(params, "/frame/id") == self.tab.frame => {
                self.tab.navigations += 1;
                text(params, "/frame/loaderId").clone_into(&mut self.tab.current);
            }
            "Page.frameRequestedNavigation"
            | "Page.frameStartedLoading"
            | "Page.frameStartedNavigating"
                if text(params, "/frameId") == self.tab.frame =>
            {
                self.tab.loading = true;
            }
            "Page.frameStoppedLoading" if text(params, "/frameId") == self.tab.frame => {
                self.tab.loading = false;
            }
            "Page.navigatedWithinDocument" if text(params, "/frameId") == self.tab.frame => {
                self.tab.navigations += 1;
            }
            "Page.javascriptDialogOpening" => {
                let seen = json!({
                    "type": text(params, "/type"),
                    "message": cut(text(params, "/message"), 500),
                    "answer": "dismissed",
                });
                self.dialogs.push(seen, DIALOGS);
                return Some(Reaction {
                    method: "Page.handleJavaScriptDialog",
                    // Accepts only the dialog that asks whether to leave the page; dismisses all
                    // others.
                    params: json!({"accept": text(params, "/type") == "beforeunload"}),
                    of_page: true,
                });
            }
            "Target.targetCreated" => return self.window(params),
            "Target.targetCrashed" if self.is_own(text(params, "/targetId")) => {
                self.crashed = true;
            }
            "Inspector.targetCrashed" => self.crashed = true,
            "Browser.downloadWillBegin" => self.downloads += 1,
            _ => {}
        }
        None
    }

    /// Returns whether an error of the browser's log reports a request that the network policy refused.
    fn is_denial(
        &self,
        error: &PageError,
        url: &str,
        refuses: &dyn Fn(&str, &str) -> bool,
    ) -> bool {
        // The entry names no method; the request with this URL does.
        let mut requests = self.requests.kept.iter();
        error.source == "network"
            && (refuses("GET", url)
                || requests.any(|request| request.denied && request.url == error.url))
    }

    /// Returns whether a target is the page under test or that of an actor.
    fn is_own(&self, target: &str) -> bool {
        let mut pages = self.contexts.values().flatten();
        target == self.first || target == self.tab.target || pages.any(|page| page == target)
    }

    /// Counts a new window and closes it. Every window except the page under test and the first one
    /// of an actor's context was opened by such a page.
    fn window(&mut self, params: &Value) -> Option<Reaction> {
        let (kind, target) = (
            text(params, "/targetInfo/type"),
            text(params, "/targetInfo/targetId"),
        );
        if kind != "page" || self.tab.target.is_empty() || self.is_own(target) {
            return None;
        }
        let context = text(params, "/targetInfo/browserContextId");
        if let Some(page @ None) = self.contexts.get_mut(context) {
            *page = Some(target.to_owned());
            return None;
        }
        self.windows += 1;
        Some(Reaction {
            method: "Target.closeTarget",
            params: json!({"targetId": target}),
            of_page: false,
        })
    }

    fn lifecycle(&mut self, params: &Value) {
        if text(params, "/frameId") != self.tab.frame {
            return;
        }
        if self.tab.loads.len() >= LOADS {
            self.tab.loads.clear();
        }
        let loader = text(params, "/loaderId").to_owned();
        let name = text(params, "/name");
        if matches!(name, "DOMContentLoaded" | "load" | "networkIdle") {
            self.tab
                .loads
                .entry(loader)
                .or_default()
                .insert(name.to_owned());
        }
    }

    /// Records an event of a web socket, without the content of messages.
    fn socket(&mut self, method: &str, params: &Value) {
        let event = method.strip_prefix("Network.webSocket").unwrap_or(method);
        let mut row = json!({"event": event, "id": cut(text(params, "/requestId"), 60)});
        match event {
            "Created" => row["url"] = json!(events::address(text(params, "/url"))),
            "FrameSent" | "FrameReceived" => {
                row["bytes"] = json!(text(params, "/response/payloadData").len());
            }
            "FrameError" => row["error"] = json!(cut(text(params, "/errorMessage"), 200)),
            _ => {}
        }
        self.sockets.push(row, ENTRIES);
    }

    fn request(&mut self, params: &Value, refuses: &dyn Fn(&str, &str) -> bool) {
        let id = text(params, "/requestId").to_owned();
        // A known id means a redirect: the request continues under the same id with a new URL.
        let place = self.open.get(&id).copied().flatten();
        if let (Some(answer), Some(entry)) = (
            params.get("redirectResponse"),
            place.and_then(|at| self.requests.kept.get_mut(at)),
        ) {
            entry.answered(answer);
        }
        let asked = text(params, "/request/url").split("://").nth(1);
        let host = asked.and_then(|rest| rest.split(['/', '?', '#', ':']).next());
        if let Some(host) = host.filter(|host| self.hosts.len() < ENTRIES && host.len() < 256) {
            self.hosts.insert(host.to_ascii_lowercase());
        }
        let place = (self.requests.kept.len() < ENTRIES).then_some(self.requests.kept.len());
        let mut request = events::request(params);
        request.denied = refuses(&request.method, text(params, "/request/url"));
        self.requests.push(request, ENTRIES);
        if self.open.len() < ENTRIES {
            self.open.insert(id, place);
        }
    }

    fn response(&mut self, params: &Value) {
        let of_document =
            text(params, "/type") == "Document" && text(params, "/frameId") == self.tab.frame;
        if of_document {
            self.tab.status = params.pointer("/response/status").and_then(Value::as_u64);
            if let Some(status @ 500..) = self.tab.status {
                let url = events::address(text(params, "/response/url"));
                self.faults.documents.push((url, status), FAULTS);
            }
        }
        let id = text(params, "/requestId");
        let place = self.open.get(id).copied().flatten();
        if let (Some(answer), Some(entry)) = (
            params.get("response"),
            place.and_then(|at| self.requests.kept.get_mut(at)),
        ) {
            entry.answered(answer);
        }
    }

    fn finished(&mut self, params: &Value, error: Option<&str>) {
        let place = self.open.remove(text(params, "/requestId")).flatten();
        let Some(entry) = place.and_then(|at| self.requests.kept.get_mut(at)) else {
            return;
        };
        entry.bytes = params
            .get("encodedDataLength")
            .and_then(Value::as_f64)
            .map(|bytes| bytes.max(0.0) as u64);
        if let Some(error) = error {
            entry.error = Some(cut(error, 200));
        }
    }
}

/// Returns the first [`SHOWN`] rows of a list.
fn first<T>(rows: &[T]) -> &[T] {
    &rows[..rows.len().min(SHOWN)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(observed: &mut Observed, method: &str, params: Value) -> Option<Reaction> {
        let refuses = |_: &str, url: &str| url.contains("//denied.test/");
        observed.take(&json!({"method": method, "params": params}), &refuses)
    }

    #[test]
    fn recorded_console_messages_and_requests_are_bounded_and_all_messages_are_counted() {
        let mut observed = Observed::default();
        for number in 0..ENTRIES as u64 + 5 {
            let entry =
                json!({"type": "log", "args": [{"type": "string", "value": format!("{number}")}]});
            told(&mut observed, "Runtime.consoleAPICalled", entry);
            let request =
                json!({"requestId": format!("{number}"), "request": {"url": "http://localhost/"}});
            told(&mut observed, "Network.requestWillBeSent", request);
        }
        assert_eq!(observed.console.kept.len(), ENTRIES);
        assert_eq!(observed.console.total, ENTRIES as u64 + 5);
        assert_eq!(observed.open.len(), ENTRIES);
    }

    #[test]
    fn confirm_dialog_is_dismissed_and_windows_opened_by_the_page_are_closed() {
        let mut observed = Observed {
            tab: Tab {
                target: "ours".to_owned(),
                ..Tab::default()
            },
            ..Observed::default()
        };
        let dialog = told(
            &mut observed,
            "Page.javascriptDialogOpening",
            json!({"type": "confirm", "message": "sure?"}),
        );
        assert_eq!(dialog.unwrap().params, json!({"accept": false}));
        assert_eq!(observed.dialogs.total, 1);
        let window = |id: &str, kind: &str| json!({"targetInfo": {"targetId": id, "type": kind}});
        assert_eq!(
            told(
                &mut observed,
                "Target.targetCreated",
                window("ours", "page")
            ),
            None
        );
        assert_eq!(
            told(
                &mut observed,
                "Target.targetCreated",
                window("x", "service_worker")
            ),
            None
        );
        let closed = told(
            &mut observed,
            "Target.targetCreated",
            window("other", "page"),
        )
        .unwrap();
        assert_eq!(
            (closed.method, closed.params),
            ("Target.closeTarget", json!({"targetId": "other"}))
        );
    }

    #[test]
    fn requests_that_the_policy_refuses_are_no_errors_of_the_page_and_failed_ones_of_its_site_are()
    {
        let mut observed = Observed::default();
        let image = |host: &str| format!("https://{host}/a.png");
        for host in ["denied.test", "localhost"] {
            let request = json!({"method": "GET", "url": image(host)});
            let sent = json!({"requestId": host, "request": request});
            told(&mut observed, "Network.requestWillBeSent", sent);
            let failed =
                json!({"requestId": host, "errorText": "net::ERR_TUNNEL_CONNECTION_FAILED"});
            told(&mut observed, "Network.loadingFailed", failed);
            let entry = json!({"level": "error", "source": "network", "url": image(host)});
            told(&mut observed, "Log.entryAdded", json!({"entry": entry}));
        }
        let denied: Vec<bool> = observed.requests.kept.iter().map(|r| r.denied).collect();
        assert_eq!(denied, [true, false]);
        assert_eq!(observed.errors.total, 1);
        assert_eq!(observed.errors.kept[0].url, image("localhost"));
    }

    #[test]
    fn fault_after_a_full_list_of_events_is_recorded_and_found_after_the_ones_before_it() {
        let mut observed = Observed::default();
        let mut error = PhpError {
            level: "warning".to_owned(),
            message: "m".to_owned(),
            file: "/f".to_owned(),
            line: 1,
            request: "GET /".to_owned(),
        };
        for _ in 0..ENTRIES {
            observed.php_error(&error);
        }
        assert!(observed.faults.php.after(0).is_none());
        error.level = "fatal".to_owned();
        observed.php_error(&error);
        assert_eq!(observed.faults.php.after(0), Some(&error));
        assert_eq!(observed.faults.php.after(1), None);
        let thrown = json!({"exceptionDetails": {"text": "Uncaught"}});
        told(&mut observed, "Runtime.exceptionThrown", thrown);
        assert!(observed.faults.exceptions.after(0).is_some());
        observed.tab.frame = "main".to_owned();
        for (frame, status) in [("main", 404), ("child", 500), ("main", 503)] {
            let answer = json!({"type": "Document", "frameId": frame, "requestId": "1",
                "response": {"status": status, "url": "http://localhost/?a=b"}});
            told(&mut observed, "Network.responseReceived", answer);
        }
        let (url, status) = observed.faults.documents.after(0).unwrap();
        assert_eq!(
            (url.as_str(), *status, observed.faults.documents.total),
            ("http://localhost/?[redacted]", 503, 1)
        );
    }

    #[test]
    fn messages_of_web_sockets_are_recorded_by_size_and_without_content() {
        let mut observed = Observed::default();
        let opened = json!({"requestId": "1", "url": "ws://localhost/x?key=secret"});
        told(&mut observed, "Network.webSocketCreated", opened);
        let sent = json!({"requestId": "1", "response": {"payloadData": "secret"}});
        told(&mut observed, "Network.webSocketFrameSent", sent);
        let rows = json!(observed.sockets.kept);
        assert_eq!(rows[1]["bytes"], 6);
        assert!(!rows.to_string().contains("secret"), "{rows}");
    }

    #[test]
    fn only_page_loads_of_the_main_frame_are_recorded() {
        let mut observed = Observed {
            tab: Tab {
                frame: "main".to_owned(),
                ..Tab::default()
            },
            ..Observed::default()
        };
        let stage =
            |frame: &str, name: &str| json!({"frameId": frame, "loaderId": "l1", "name": name});
        told(&mut observed, "Page.lifecycleEvent", stage("child", "load"));
        assert!(!observed.reached("l1", "load"));
        told(&mut observed, "Page.lifecycleEvent", stage("main", "load"));
        assert!(observed.reached("l1", "load") && !observed.reached("l2", "load"));
    }

    /// An event of a new page returns `Some` if that page must be closed. An actor is a simulated
    /// user of a scenario with a browser context of its own.
    #[test]
    fn first_page_of_an_actors_context_stays_open_and_a_second_one_is_closed() {
        let mut observed = Observed {
            first: "ours".to_owned(),
            contexts: BTreeMap::from([("context".to_owned(), None)]),
            ..Observed::default()
        };
        observed.tab.target = "ours".to_owned();
        let mut opened = |id: &str, context: &str| {
            let info = json!({"targetId": id, "type": "page", "browserContextId": context});
            told(
                &mut observed,
                "Target.targetCreated",
                json!({"targetInfo": info}),
            )
        };
        assert_eq!(opened("actor", "context"), None);
        assert_eq!(opened("actor", "context"), None);
        assert!(opened("popup", "context").is_some());
        assert!(opened("popup", "other").is_some());
        assert_eq!(observed.windows, 2);
        let crash = |id: &str| json!({"targetId": id});
        told(&mut observed, "Target.targetCrashed", crash("popup"));
        assert!(!observed.crashed);
        told(&mut observed, "Target.targetCrashed", crash("actor"));
        assert!(observed.crashed);
    }
}
