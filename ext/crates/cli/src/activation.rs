//! Activation of mounted plugins and themes: the option that skips it, and the explanation of its
//! errors.

use clap::Args;
use serde_json::{Map, Value};
use wp_codebox_contracts::{ErrorBody, ErrorCode, EventType, LifecycleEvent, RunResult};

/// Command that activates a plugin or theme in the guest.
pub(crate) const COMMAND: &str = "wordpress.wp-cli";
/// Prefix of the argument of [`COMMAND`] that contains the WP-CLI command line.
const LINE: &str = "command=";
/// Maximum number of characters of WP-CLI's output that an error contains.
const MAX_OUTPUT: usize = 4000;

/// Each kind of unmet requirement: a part of the message that WordPress prints for it, and the hint
/// for the user.
const REQUIREMENTS: &[(&str, &str)] = &[
    (
        "parent theme is missing",
        "mount the parent theme too: --mount DIR_OF_PARENT --mount .",
    ),
    (
        "to be installed and activated",
        "mount the required plugins too, before this one: --mount DIR_OF_PLUGIN --mount .",
    ),
    (
        "Current PHP version",
        "choose another PHP program for the sandbox with --php FILE",
    ),
    (
        "Current WordPress version",
        "choose another WordPress with --wp VERSION; `wp-codebox wordpress list` lists the versions",
    ),
];

/// Whether the mounted plugins and themes are activated.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ActivationArgs {
    /// Do not activate the plugins and themes that are mounted without a guest path.
    #[arg(long)]
    pub no_activate: bool,
}

/// Returns the argument of [`COMMAND`] for a command line of WP-CLI.
pub(crate) fn argument(line: &str) -> String {
    format!("{LINE}{line}")
}

/// Command line and output of the last activation in a guest, from the events of its run.
#[derive(Debug, Default)]
pub(crate) struct LatestActivation {
    line: String,
    printed: String,
}

impl LatestActivation {
    /// Updates the command line or the output from an event of the run. A command that is not an
    /// activation clears both; events of other types change nothing.
    pub(crate) fn see(&mut self, event: &LifecycleEvent) {
        match event.kind {
            EventType::CommandStarted => {
                self.line = line(&event.data).unwrap_or_default().to_owned();
                self.printed.clear();
            }
            EventType::CommandOutput => {
                let text = event.data.get("text").and_then(Value::as_str);
                self.printed.push_str(text.unwrap_or_default());
            }
            _ => {}
        }
    }

    /// Returns the output of the last activation.
    pub(crate) fn printed(&self) -> &str {
        &self.printed
    }

    /// Adds command line, output and hints of the last activation to the error of a run. Call this
    /// only for a run that has no commands except activations.
    pub(crate) fn explain(&self, error: ErrorBody) -> ErrorBody {
        if error.code != ErrorCode::RunFailed || self.line.is_empty() {
            return error;
        }
        let start: String = self.printed.chars().take(MAX_OUTPUT).collect();
        explained(error, &self.line, &self.printed).with("output", start)
    }
}

/// Adds command line and hints to the error of a run if an activation by this program caused it.
/// `own` contains the arguments of the user's own command: if that command is the failed
/// activation, the error stays unchanged.
pub(crate) fn explain(result: &mut RunResult, own: &[String]) {
    if result.error.as_ref().map(|error| error.code) != Some(ErrorCode::RunFailed) {
        return;
    }
    let executions = result.transcript["executions"].as_array();
    let failed = executions
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .find(|execution| execution.get("exitCode") != Some(&Value::from(0)));
    let Some(failed) = failed else { return };
    let Some(line) = line(failed) else { return };
    if own.iter().any(|own| own.strip_prefix(LINE) == Some(line)) {
        return;
    }
    let text = |name| failed.get(name).and_then(Value::as_str).unwrap_or_default();
    let printed = format!("{}{}", text("stdout"), text("stderr"));
    result.error = result
        .error
        .take()
        .map(|error| explained(error, line, &printed));
}

/// Returns the WP-CLI command line in the data of an event or transcript entry, if it is an
/// activation of a plugin or theme.
fn line(of: &Map<String, Value>) -> Option<&str> {
    if of.get("command")? != COMMAND {
        return None;
    }
    let line = of.get("args")?.get(0)?.as_str()?.strip_prefix(LINE)?;
    let activates = ["plugin activate ", "theme activate "];
    activates
        .iter()
        .any(|start| line.starts_with(start))
        .then_some(line)
}

fn explained(error: ErrorBody, line: &str, printed: &str) -> ErrorBody {
    let message = format!("`wp {line}` failed in the sandbox: {}", error.message);
    let mut error = ErrorBody { message, ..error };
    if let Some(file) = missing_file(printed) {
        let first = file.split('/').next().unwrap_or_default();
        error = error.hint(match first {
            "vendor" => format!("{file} is missing: run composer install"),
            _ => format!("{file} is missing: build the project, for example with npm run build"),
        });
    }
    for (what, hint) in REQUIREMENTS {
        if printed.contains(what) {
            error = error.hint(*hint);
        }
    }
    error.hint("--no-activate starts the sandbox without the activation")
}

/// Returns the file that PHP did not find, relative to the directory of its plugin or theme.
fn missing_file(printed: &str) -> Option<&str> {
    let (_, rest) = printed.split_once("Failed opening required '")?;
    let (path, _) = rest.split_once('\'')?;
    let (_, below) = path.split_once("/wp-content/")?;
    // Skip `plugins` or `themes` and the slug.
    below.splitn(3, '/').nth(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FATAL: &str = "Fatal error: Uncaught Error: Failed opening required '/wordpress/wp-content/plugins/hello/vendor/autoload.php' (include_path='.')";

    fn event(kind: EventType, data: &Value) -> LifecycleEvent {
        LifecycleEvent {
            id: "evt-1".to_owned(),
            seq: 1,
            kind,
            timestamp: String::new(),
            execution_id: None,
            data: data.as_object().unwrap().clone(),
        }
    }

    fn started(command: &str, argument: &str) -> LifecycleEvent {
        let data = json!({"command": command, "args": [argument]});
        event(EventType::CommandStarted, &data)
    }

    #[test]
    fn activation_error_names_the_wp_cli_command_the_missing_file_and_the_no_activate_option() {
        let mut latest = LatestActivation::default();
        latest.see(&started(COMMAND, "command=plugin activate hello/hello.php"));
        latest.see(&event(EventType::CommandOutput, &json!({"text": FATAL})));
        let failed = ErrorBody::new(ErrorCode::RunFailed, "wp exited with 255");
        let error = latest.explain(failed.clone());
        assert_eq!(
            error.message,
            "`wp plugin activate hello/hello.php` failed in the sandbox: wp exited with 255"
        );
        assert_eq!(
            error.hints,
            [
                "vendor/autoload.php is missing: run composer install",
                "--no-activate starts the sandbox without the activation"
            ]
        );
        // An error after a command that is not an activation stays unchanged.
        latest.see(&started(COMMAND, "command=option get home"));
        assert_eq!(latest.explain(failed).hints.len(), 0);
        // An error with another code than `RunFailed` stays unchanged.
        latest.see(&started(COMMAND, "command=theme activate sky"));
        let other = ErrorBody::new(ErrorCode::Busy, "x");
        assert_eq!(latest.explain(other).message, "x");
    }

    #[test]
    fn unmet_requirement_adds_a_hint_and_another_failure_has_only_the_no_activate_hint() {
        for (printed, expected) in [
            (
                "Error: The parent theme is missing. Please install the \"sky\" parent theme.",
                Some("mount the parent theme too: --mount DIR_OF_PARENT --mount ."),
            ),
            (
                "Warning: Failed to activate plugin. Add-on requires 1 plugin to be installed and activated: shop.",
                Some(
                    "mount the required plugins too, before this one: --mount DIR_OF_PLUGIN --mount .",
                ),
            ),
            (
                "Error: Current PHP version does not meet minimum requirements for Sky.",
                Some("choose another PHP program for the sandbox with --php FILE"),
            ),
            (
                "Error: Current WordPress version (6.9) does not meet minimum requirements for Sky.",
                Some(
                    "choose another WordPress with --wp VERSION; `wp-codebox wordpress list` lists the versions",
                ),
            ),
            ("Error: Call to undefined function shop()", None),
        ] {
            let failed = ErrorBody::new(ErrorCode::RunFailed, "wp exited with 1");
            let hints = explained(failed, "theme activate sky", printed).hints;
            let (last, others) = hints.split_last().unwrap();
            assert!(last.starts_with("--no-activate"), "{hints:?}");
            assert_eq!(others, expected.as_slice(), "{printed}");
        }
    }

    #[test]
    fn missing_file_is_named_relative_to_the_plugin_or_theme() {
        for (printed, expected) in [
            (FATAL, Some("vendor/autoload.php")),
            (
                "Failed opening required '/wordpress/wp-content/themes/sky/build/a.php' (x)",
                Some("build/a.php"),
            ),
            ("Failed opening required '/tmp/functions.php'", None),
            ("Failed opening required '/wordpress/wp-content/x'", None),
            ("Failed opening required '", None),
            ("", None),
        ] {
            assert_eq!(missing_file(printed), expected, "{printed}");
        }
    }
}
