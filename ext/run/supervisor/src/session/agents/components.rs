//! Activates and checks components (host code that WordPress loads, such as plugins) in a guest
//! before any other program runs there.
//!
//! Each activation is a separate process, so that a plugin that ends PHP is identified and does not
//! affect the other components. A last program checks that all components are loaded and that the
//! ability that does the agent's work exists, before the run consumes time or tokens.

use super::activation;
use super::answer::{Answered, Program, ask, ended};
use super::bundles;
use crate::prepared::ready_components::ReadyComponent;
use crate::request::components::{optional, unavailable};
use crate::request::programs::agent_step;
use crate::session::guest::GuestContext;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{
    ActivationKind, Agent, ComponentLoad, ErrorBody, ErrorCode, GuestPhase,
};
use wp_codebox_runtime::{COMPONENTS, Stop};

/// Activates the components of the request, checks that they are loaded, and imports the agent
/// bundles, unless a recipe step runs the agent. Returns the reason to stop the run, if any.
pub(crate) fn load(guest: &mut GuestContext<'_, '_>) -> Result<Option<Stop>, ErrorBody> {
    let run = guest.run;
    // Steps of a recipe activate its plugins, which may register the ability and import the bundles.
    let is_step = agent_step(&run.prepared.request).is_some();
    let ability = match (&run.prepared.request.agent, guest.phase) {
        (Some(Agent::Ability(task)), GuestPhase::Work) if !is_step => Some(task.ability.as_str()),
        _ => None,
    };
    if run.components.is_empty() && ability.is_none() {
        return match guest.phase {
            GuestPhase::Work if !is_step => bundles::import(guest),
            GuestPhase::Work | GuestPhase::Check => Ok(None),
        };
    }
    let mut missing = MissingComponents::default();
    for row in &run.components {
        if row.component.load_as != ComponentLoad::Plugin || !row.component.activate {
            continue;
        }
        let plugin = format!("{}/{}", row.component.slug, row.entry);
        let answered =
            activation::activate(guest, "component.activate", ActivationKind::Plugin, &plugin)?;
        if let Some(stop) = ended(&answered) {
            return Ok(Some(stop));
        }
        if answered.text("status").as_deref() != Some("ready") {
            let why = answered
                .text("message")
                .unwrap_or_else(|| answered.missing_answer_reason());
            missing.note(row, format!("it could not be activated: {why}"))?;
        }
    }
    let answered = ask(guest, probe(&run.components, ability))?;
    if let Some(stop) = ended(&answered) {
        return Ok(Some(stop));
    }
    let Some(answer) = &answered.answer else {
        return Err(broken(&run.components, &answered));
    };
    for row in &run.components {
        if let Some(why) = not_ready(answer, &row.component.slug) {
            missing.note(row, why)?;
        }
    }
    if let Some(ability) = ability {
        found(ability, answer, &missing)?;
    }
    match guest.phase {
        GuestPhase::Work => {
            guest.recorder.evidence.notices.append(&mut missing.notices);
            match is_step {
                true => Ok(None),
                false => bundles::import(guest),
            }
        }
        GuestPhase::Check => Ok(None),
    }
}

/// Optional components that could not be loaded, with the notices about them.
#[derive(Default)]
struct MissingComponents {
    slugs: Vec<String>,
    notices: Vec<String>,
}

impl MissingComponents {
    fn note(&mut self, row: &ReadyComponent, why: String) -> Result<(), ErrorBody> {
        let slug = &row.component.slug;
        if row.component.required {
            return Err(unavailable(slug, &why));
        }
        // A component that fails to activate is also not loaded; one notice is enough.
        if !self.slugs.contains(slug) {
            self.slugs.push(slug.clone());
            self.notices.push(optional(slug, &why));
        }
        Ok(())
    }
}

fn probe<'a>(components: &[ReadyComponent], ability: Option<&str>) -> Program<'a> {
    let rows: Vec<Value> = components
        .iter()
        .map(|row| json!({"slug": row.component.slug, "probe": row.component.readiness_probe}))
        .collect();
    Program {
        file: "probe-components.php",
        command: "component.probe",
        args: components
            .iter()
            .map(|row| format!("slug={}", row.component.slug))
            .chain(ability.map(|name| format!("ability={name}")))
            .collect(),
        phase: COMPONENTS,
        input: Map::from_iter([
            ("components".to_owned(), json!(rows)),
            ("ability".to_owned(), json!(ability)),
        ]),
    }
}

/// Returns the error for a guest whose WordPress cannot load the components.
fn broken(components: &[ReadyComponent], answered: &Answered) -> ErrorBody {
    let slugs: Vec<&str> = components
        .iter()
        .map(|row| row.component.slug.as_str())
        .collect();
    ErrorBody::new(
        ErrorCode::ComponentUnavailable,
        format!(
            "the guest's WordPress does not load with the components (plugins) {}: {}",
            slugs.join(", "),
            answered.missing_answer_reason()
        ),
    )
    .hint("check the must-use components first: one that calls exit() while it is loaded stops WordPress, even if the component is optional")
}

/// Returns why the component is not loaded according to the guest's report; `None` when it is.
fn not_ready(answer: &Map<String, Value>, slug: &str) -> Option<String> {
    let row = answer.get("components").and_then(|rows| rows.get(slug));
    if row.and_then(|row| row.get("ready")) == Some(&Value::Bool(true)) {
        return None;
    }
    let said = row.and_then(|row| row.get("message")?.as_str());
    Some(super::answer::sentence(
        said.unwrap_or("its readiness probe gave no answer"),
    ))
}

/// Fails if the guest's WordPress has no ability `ability`, which is to do the agent's work.
fn found(
    ability: &str,
    answer: &Map<String, Value>,
    missing: &MissingComponents,
) -> Result<(), ErrorBody> {
    let row = answer.get("ability");
    if row.and_then(|row| row.get("exists")) == Some(&Value::Bool(true)) {
        return Ok(());
    }
    let names: Vec<String> = row
        .and_then(|row| row.get("namespaces")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(|name| Some(super::answer::sentence(name.as_str()?)))
        .take(50)
        .collect();
    let there = if names.is_empty() {
        "it has no abilities at all".to_owned()
    } else {
        format!(
            "its abilities have the namespaces {} and possibly more",
            names.join(", ")
        )
    };
    let mut error = ErrorBody::new(
        ErrorCode::RuntimeTaskRequestInvalid,
        format!(
            "the guest's WordPress has no ability {ability}: {there}; use a registered ability or add the component that registers this one"
        ),
    )
    .with("namespaces", names);
    for notice in &missing.notices {
        error = error.hint(notice.clone());
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn component_is_ready_only_if_the_guest_reports_ready_true() {
        let answer = object(json!({"components": {
            "good": {"ready": true},
            "bad": {"ready": false, "message": "no such\nability"},
            "odd": {"ready": "true"},
        }}));
        assert_eq!(not_ready(&answer, "good"), None);
        assert_eq!(not_ready(&answer, "bad").unwrap(), "no such ability");
        assert!(not_ready(&answer, "odd").is_some());
        assert!(not_ready(&answer, "missing").is_some());
        assert!(not_ready(&Map::new(), "good").is_some());
    }

    #[test]
    fn error_for_missing_ability_lists_registered_namespaces_and_missing_components() {
        let yes = object(json!({"ability": {"exists": true, "namespaces": ["a"]}}));
        assert!(found("a/b", &yes, &MissingComponents::default()).is_ok());
        let no = object(json!({"ability": {"exists": false, "namespaces": ["core", "other"]}}));
        let missing = MissingComponents {
            slugs: vec!["agent".to_owned()],
            notices: vec!["the optional component agent is not available: broken".to_owned()],
        };
        let error = found("a/b", &no, &missing).unwrap_err();
        assert_eq!(error.code, ErrorCode::RuntimeTaskRequestInvalid);
        assert!(error.message.contains("core, other"), "{error}");
        assert_eq!(error.hints.len(), 1);
        assert!(found("a/b", &Map::new(), &MissingComponents::default()).is_err());
    }
}
