//! `WPCodebox\Native\Policy`: the runtime policy and the command registry.

use crate::arguments::{Answer, Array, Text};
use crate::guard::guard;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::{php_class, php_impl};
use serde_json::{Value, json};
use wp_codebox_contracts::CodedError;
use wp_codebox_policy as rules;

/// The PHP class for runtime policies and the registry of guest commands.
#[php_class]
#[php(name = "WPCodebox\\Native\\Policy", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Policy;

#[php_impl]
impl Policy {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self
    }

    /// Returns the default policy that allows the given commands.
    #[php(defaults(commands = Array::default_list(&[])))]
    pub(crate) fn defaults(commands: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let policy = rules::defaults(commands.texts("commands")?);
            Ok(Answer(json!(policy)))
        })
    }

    /// Returns every violation of the policy rules in a policy document; empty if it is valid.
    pub(crate) fn validate(policy: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let document = Value::Object(policy.object("policy")?);
            Ok(Answer(json!(rules::validate(&document))))
        })
    }

    /// Throws unless the policy is valid and allows the command.
    pub(crate) fn assert_command(policy: Array<'_>, command: Text<'_>) -> PhpResult<()> {
        guard(|| {
            let document = Value::Object(policy.object("policy")?);
            let policy = rules::parse(&document)?;
            let command = command.utf8("command")?;
            if !policy.commands.iter().any(|id| id == command) {
                let error = rules::CommandError::Disallowed {
                    command: command.to_owned(),
                    allowed: policy.commands,
                };
                return Err(error.body().into());
            }
            if rules::descriptor(command).is_none() {
                let error = rules::CommandError::Unknown {
                    command: command.to_owned(),
                };
                return Err(error.body().into());
            }
            Ok(())
        })
    }

    /// Returns the registry: every command that a guest offers, with its arguments.
    pub(crate) fn commands() -> PhpResult<Answer> {
        guard(|| Ok(Answer(rules::catalog())))
    }
}
