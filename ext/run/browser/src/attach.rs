//! Attaches to the browser's first page, opens pages of actors, and prepares them for a command.

use super::events::text;
use super::storage::StorageState;
use super::task::Task;
use super::wire::{Failure, Wire, timeout};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub(super) fn attach(
    wire: &mut Wire<'_>,
    task: &Task,
    storage: &StorageState,
    until: Instant,
) -> Result<(), Failure> {
    let began = Instant::now();
    // The browser accepts requests before its first page exists, so ask until there is a page.
    let target = loop {
        let found = wire.ask_browser("Target.getTargets", json!({}), until)?;
        let list = found.get("targetInfos").and_then(Value::as_array);
        let page = list.and_then(|list| list.iter().find(|info| text(info, "/type") == "page"));
        if let Some(page) = page {
            break text(page, "/targetId").to_owned();
        }
        if Instant::now() >= until {
            return Err(timeout("starting the browser", began));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let attached = wire.ask_browser(
        "Target.attachToTarget",
        json!({"targetId": target, "flatten": true}),
        until,
    )?;
    wire.attach(text(&attached, "/sessionId").to_owned());
    wire.observed.first.clone_from(&target);
    wire.observed.tab.target = target;
    wire.ask_browser(
        "Target.setDiscoverTargets",
        json!({"discover": true}),
        until,
    )?;
    wire.ask_browser(
        "Browser.setDownloadBehavior",
        json!({"behavior": "deny", "eventsEnabled": true}),
        until,
    )?;
    prepare(wire, task, storage, until)
}

/// Opens a browser context for an actor, with cookies and local storage of its own. Further
/// requests go to the page of this context. Returns the debugging session of the page.
pub(super) fn open_actor(
    wire: &mut Wire<'_>,
    task: &Task,
    storage: &StorageState,
    until: Instant,
) -> Result<String, Failure> {
    let created = wire.ask_browser("Target.createBrowserContext", json!({}), until)?;
    let context = text(&created, "/browserContextId").to_owned();
    wire.observed.contexts.insert(context.clone(), None);
    wire.ask_browser(
        "Browser.setDownloadBehavior",
        json!({"behavior": "deny", "browserContextId": context, "eventsEnabled": true}),
        until,
    )?;
    let created = wire.ask_browser(
        "Target.createTarget",
        json!({"url": "about:blank", "browserContextId": context, "newWindow": true}),
        until,
    )?;
    let target = text(&created, "/targetId").to_owned();
    wire.observed.contexts.insert(context, Some(target.clone()));
    let attached = wire.ask_browser(
        "Target.attachToTarget",
        json!({"targetId": target, "flatten": true}),
        until,
    )?;
    let session = text(&attached, "/sessionId").to_owned();
    wire.turn_to(&session);
    wire.observed.tab.target = target;
    prepare(wire, task, storage, until)?;
    Ok(session)
}

/// Prepares the page to which requests are sent: its events, environment, cookies and scripts.
fn prepare(
    wire: &mut Wire<'_>,
    task: &Task,
    storage: &StorageState,
    until: Instant,
) -> Result<(), Failure> {
    wire.ask("Page.enable", json!({}), until)?;
    let tree = wire.ask("Page.getFrameTree", json!({}), until)?;
    wire.observed.tab.frame = text(&tree, "/frameTree/frame/id").to_owned();
    for (method, params) in [
        ("Page.setLifecycleEventsEnabled", json!({"enabled": true})),
        (
            "Page.setInterceptFileChooserDialog",
            json!({"enabled": true}),
        ),
        ("Runtime.enable", json!({})),
        ("Log.enable", json!({})),
        ("Inspector.enable", json!({})),
        (
            "Network.enable",
            json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}),
        ),
    ] {
        wire.ask(method, params, until)?;
    }
    task.environment.apply(wire, until)?;
    if !storage.cookies.is_empty() {
        let cookies: Vec<Value> = storage
            .cookies
            .iter()
            .map(super::storage::Cookie::param)
            .collect();
        wire.ask("Network.setCookies", json!({"cookies": cookies}), until)?;
    }
    for script in storage.script().iter().chain(&task.pre_script) {
        wire.ask(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({"source": script}),
            until,
        )?;
    }
    Ok(())
}
