//! Reads which kind of work a browser command asks for.

use super::arguments::Arguments;
use super::capture_kind::PageKind;
use super::step_spec::{Actor, StepSpec};
use super::steps::{self, StepsRefused};
use super::task::{
    AnimatedMedia, Antialiased, CanvasProbe, CompareInput, CompareSide, CompareTask, EditorAct,
    EditorTask, Extent, PixelRule, Work, address,
};
use serde_json::Value;
use std::time::Duration;
use wp_codebox_contracts::{SITE_ORIGIN, parse_json};
use wp_codebox_policy::check_browser_scenario;

/// Timeout for opening the editor that a command does not set.
const EDITOR_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of serialised blocks and of a style sheet in an argument, in bytes.
const TEXT: usize = 1024 * 1024;
/// Maximum number of selectors of a canvas probe.
const SELECTORS: usize = 200;
/// Style sheet that stops animations, transitions and the blinking of the cursor.
const FREEZE: &str = "*, *::before, *::after { animation: none !important; transition: none !important; caret-color: transparent !important; scroll-behavior: auto !important; }\n";

pub(super) fn work(arguments: &Arguments<'_>) -> Result<Work, StepsRefused> {
    let value = |name: &str| arguments.value(name);
    match arguments.command() {
        "wordpress.browser-page-load" => Ok(Work::PageLoad {
            surface: value("surface").unwrap_or_else(|| "frontend".to_owned()),
        }),
        "wordpress.capture-html" => Ok(Work::Html),
        "wordpress.browser-actions" => {
            let steps = match value("steps-json") {
                Some(json) => steps::parse(&json, PageKind::Any)?,
                None if value("url").is_some() => Vec::new(),
                None => return Err("give steps-json or url".to_owned().into()),
            };
            Ok(Work::Actions { steps, name: None })
        }
        "wordpress.browser-scenario" => scenario(arguments),
        "wordpress.visual-compare" => Ok(Work::Compare(Box::new(compare(arguments)?))),
        "wordpress.editor-open" => editor(arguments, EditorAct::Open),
        "wordpress.editor-actions" => {
            let steps = value("steps-json").ok_or_else(|| "steps-json is required".to_owned())?;
            let steps = steps::parse(&steps, PageKind::Editor)?;
            editor(arguments, EditorAct::Steps(steps))
        }
        "wordpress.editor-validate-blocks" => {
            let act = validation(arguments)?;
            editor(arguments, act)
        }
        "wordpress.editor-canvas-probe" => {
            let act = EditorAct::Probe(probe(arguments)?);
            editor(arguments, act)
        }
        _ => Ok(Work::Probe),
    }
}

/// Parses the steps of a browser scenario, given in `scenario-json` or as a list in `steps-json`.
fn scenario(arguments: &Arguments<'_>) -> Result<Work, StepsRefused> {
    let listed = arguments.value("steps-json");
    let Some(text) = arguments.value("scenario-json") else {
        let steps = listed.map_or(Ok(Vec::new()), |json| steps::parse(&json, PageKind::Any))?;
        if steps.is_empty() && arguments.value("url").is_none() {
            return Err("give scenario-json or url".to_owned().into());
        }
        return Ok(Work::Actions { steps, name: None });
    };
    if listed.is_some() {
        return Err("give scenario-json or steps-json, not both"
            .to_owned()
            .into());
    }
    let document: Value = parse_json(text.as_bytes()).map_err(|e| format!("scenario-json: {e}"))?;
    steps::judged(&check_browser_scenario(&document))?;
    let steps: Vec<StepSpec> = match document.get("steps").and_then(Value::as_array) {
        Some(list) => steps::parse_values(list, PageKind::Any)?,
        None => Vec::new(),
    };
    let steps = cast(steps, &document);
    let name = ["name", "title", "id"]
        .iter()
        .find_map(|name| document.get(*name).and_then(Value::as_str))
        .map(str::to_owned);
    Ok(Work::Actions { steps, name })
}

/// Returns the steps with their actors: a step without one has that of the scenario, and the
/// scenario's list of actors says which sessions they have.
fn cast(mut steps: Vec<StepSpec>, document: &Value) -> Vec<StepSpec> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let all = text(document, "actor");
    let rows = document.get("actors").and_then(Value::as_array);
    for step in &mut steps {
        let Some(name) = step.actor.take().map(|a| a.name).or_else(|| all.clone()) else {
            continue;
        };
        let own = rows
            .into_iter()
            .flatten()
            .find(|row| text(row, "name").as_deref() == Some(name.as_str()));
        let session = own.and_then(|row| text(row, "userSession").or_else(|| text(row, "session")));
        step.actor = Some(Actor {
            session: session.unwrap_or_else(|| name.clone()),
            name,
        });
    }
    steps
}

fn editor(arguments: &Arguments<'_>, act: EditorAct) -> Result<Work, StepsRefused> {
    let probed = arguments.count("timeout-ms", 0)?;
    let wait_timeout = match (arguments.time("wait-timeout")?, u64::try_from(probed)) {
        (Some(time), _) => time,
        (None, Ok(ms @ 1..)) => Duration::from_millis(ms),
        (None, _) => EDITOR_TIMEOUT,
    };
    Ok(Work::Editor(EditorTask {
        wait_selector: arguments.value("wait-selector"),
        wait_timeout,
        act,
    }))
}

fn validation(arguments: &Arguments<'_>) -> Result<EditorAct, String> {
    if arguments.value("content-file").is_some() {
        return Err("give content or content-file, not both".to_owned());
    }
    let content = arguments.value("content");
    if content.as_ref().is_some_and(|text| text.len() > TEXT) {
        return Err(format!("content is longer than {TEXT} bytes"));
    }
    let provider = arguments.value("validation-provider");
    let provider = provider.unwrap_or_else(|| "block-editor".to_owned());
    if provider.len() > 100 || provider.chars().any(char::is_control) {
        return Err("validation-provider must be a name of at most 100 bytes".to_owned());
    }
    Ok(EditorAct::Validate { content, provider })
}

fn probe(arguments: &Arguments<'_>) -> Result<CanvasProbe, String> {
    let or =
        |name: &str, default: &str| arguments.value(name).unwrap_or_else(|| default.to_owned());
    let mut groups = Vec::new();
    if let Some(json) = arguments.value("selector-groups-json") {
        let rows: Vec<Value> = parse_json(json.as_bytes())
            .map_err(|e| format!("selector-groups-json is not a JSON list: {e}"))?;
        for (index, row) in rows.iter().enumerate() {
            groups.push(group(index, row)?);
        }
    }
    if groups.iter().map(|row| row.1.len()).sum::<usize>() > SELECTORS {
        return Err(format!(
            "selector-groups-json has more than {SELECTORS} selectors"
        ));
    }
    Ok(CanvasProbe {
        frame: or("iframe-selector", super::task::CANVAS),
        layout: or("layout-selector", ".block-editor-block-list__layout"),
        block: or("block-selector", "[data-block]"),
        groups,
    })
}

/// Reads a group of selectors: a selector, a list of selectors, or `{name, selectors}`.
fn group(index: usize, row: &Value) -> Result<(String, Vec<String>), String> {
    let wrong = || {
        format!(
            "selector-groups-json[{index}] must be a selector, a list of selectors, or {{name, selectors}}"
        )
    };
    let texts = |value: &Value| -> Option<Vec<String>> {
        match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(rows) => rows
                .iter()
                .map(|row| row.as_str().map(str::to_owned))
                .collect(),
            _ => None,
        }
    };
    let number = index.to_string();
    let (name, selectors) = match row {
        Value::Object(members) => {
            let known = ["name", "id", "label", "selectors", "selector"];
            if members.keys().any(|name| !known.contains(&name.as_str())) {
                return Err(wrong());
            }
            let name = known[..3]
                .iter()
                .find_map(|name| members.get(*name)?.as_str());
            let selectors = members.get("selectors").or_else(|| members.get("selector"));
            (name.unwrap_or(&number), selectors.and_then(texts))
        }
        other => (number.as_str(), texts(other)),
    };
    match selectors {
        Some(selectors) if !selectors.iter().any(String::is_empty) && !selectors.is_empty() => {
            Ok((name.to_owned(), selectors))
        }
        _ => Err(wrong()),
    }
}

/// Returns the URL at which a command opens the block editor.
pub(super) fn editor_url(arguments: &Arguments<'_>) -> Result<String, String> {
    let value = |name: &str| arguments.value(name);
    let (target, post, kind) = (value("target"), value("post-id"), value("post-type"));
    let given: Vec<&str> = [
        ("url", value("url").is_some()),
        ("post-id", post.is_some()),
        ("target", target.as_deref().is_some_and(|t| t != "post-new")),
        ("post-type", kind.is_some()),
    ]
    .iter()
    .filter(|row| row.1)
    .map(|row| row.0)
    .collect();
    if let [one, other, ..] = given.as_slice() {
        return Err(format!(
            "{one} and {other} name different pages; leave one of them out"
        ));
    }
    if let Some(url) = value("url") {
        return address(&url);
    }
    let path = match (post, target.as_deref()) {
        (Some(id), _) => format!("/wp-admin/post.php?post={id}&action=edit"),
        (None, Some("site")) => "/wp-admin/site-editor.php?canvas=edit".to_owned(),
        (None, Some("front-page")) => "/wp-admin/site-editor.php?p=%2F&canvas=edit".to_owned(),
        (None, _) => match kind {
            None => "/wp-admin/post-new.php".to_owned(),
            Some(kind) if is_slug(&kind) => format!("/wp-admin/post-new.php?post_type={kind}"),
            Some(_) => {
                return Err(
                    "post-type must be 1 to 20 lower-case letters, digits, - or _".to_owned(),
                );
            }
        },
    };
    Ok(format!("{SITE_ORIGIN}{path}"))
}

fn is_slug(text: &str) -> bool {
    (1..=20).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b))
}

fn compare(arguments: &Arguments<'_>) -> Result<CompareTask, String> {
    let value = |name: &str| arguments.value(name);
    let mut style = match value("animations").as_deref() {
        Some("allow") => String::new(),
        _ => FREEZE.to_owned(),
    };
    let own = value("capture-style").unwrap_or_default();
    if own.len() > TEXT {
        return Err(format!("capture-style is longer than {TEXT} bytes"));
    }
    style.push_str(&own);
    let threshold = match value("threshold") {
        None => 0.1,
        Some(text) => text
            .parse()
            .ok()
            .filter(|number| (0.0..=1.0).contains(number))
            .ok_or_else(|| "threshold must be a number from 0 to 1".to_owned())?,
    };
    Ok(CompareTask {
        source: side(arguments, "source", &["source-screenshot", "baseline"])?,
        candidate: side(arguments, "candidate", &["candidate-screenshot"])?,
        style,
        media: match value("animated-media").as_deref() {
            Some("first-frame") => AnimatedMedia::FirstFrame,
            _ => AnimatedMedia::Plays,
        },
        extent: match arguments.flag("full-page")? {
            Some(true) => Extent::FullPage,
            _ => Extent::Viewport,
        },
        rule: PixelRule {
            threshold,
            antialiased: match arguments.flag("include-aa")? {
                Some(true) => Antialiased::Counts,
                _ => Antialiased::Ignored,
            },
        },
        max_regions: arguments.count("max-regions", 20)?,
        max_elements: arguments.count("max-explanation-elements", 1000)?,
        max_candidates: arguments.count("max-explanation-candidates", 5)?,
        explain: arguments.all("explain-selector"),
    })
}

fn side(arguments: &Arguments<'_>, name: &str, pictures: &[&str]) -> Result<CompareSide, String> {
    let page = format!("{name}-url");
    let given: Vec<(&str, String)> = [page.as_str()]
        .iter()
        .chain(pictures)
        .filter_map(|name| arguments.value(name).map(|value| (*name, value)))
        .collect();
    let snapshot = arguments.value(&format!("{name}-dom-snapshot"));
    let from = match given.as_slice() {
        [] => return Err(format!("give {page} or {}", pictures.join(" or "))),
        [(named, url)] if *named == page => CompareInput::Page(address(url)?),
        [(_, path)] => CompareInput::Stored(path.clone()),
        [one, other, ..] => {
            return Err(format!("give {} or {}, not both", one.0, other.0));
        }
    };
    if snapshot.is_some() && matches!(from, CompareInput::Page(_)) {
        return Err(format!(
            "{name}-dom-snapshot can be given only with {}; leave it out, because the command inspects the page of {page} itself",
            pictures.join(" or ")
        ));
    }
    Ok(CompareSide {
        label: arguments
            .value(&format!("{name}-label"))
            .unwrap_or_else(|| name.to_owned()),
        from,
        snapshot,
    })
}
