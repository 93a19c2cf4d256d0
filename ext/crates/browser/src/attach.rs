//! Attaches to the browser's only page and prepares it for a command.

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
    // The browser answers shortly before its first page exists, so ask until there is a page.
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
    wire.observed.target = target;
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
    wire.ask("Page.enable", json!({}), until)?;
    let tree = wire.ask("Page.getFrameTree", json!({}), until)?;
    wire.observed.frame = text(&tree, "/frameTree/frame/id").to_owned();
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
