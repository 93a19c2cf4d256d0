//! Commands about captured mails, which the supervisor executes itself.

use super::mail::{self, Inspection};
use super::{Commanded, Session};
use serde_json::{Value, json};
use std::time::Instant;
use wp_codebox_contracts::{CommandCall, ErrorBody, ErrorCode};
use wp_codebox_policy::{MailOperation, arg_value, check_mail_service};

/// Number of messages to return if the command sets no limit.
const MESSAGES: usize = 20;

impl Session<'_, '_> {
    pub(super) fn mail_command(
        &mut self,
        call: &CommandCall,
        operation: MailOperation,
    ) -> Result<Commanded, ErrorBody> {
        let started = Instant::now();
        match self.mails(call, operation) {
            Ok(document) => self.carried_out(call, started, &document, None),
            Err((code, why)) => {
                let message = format!("{}: {why}", call.command);
                let error = ErrorBody::new(code, message).with("command", call.command.clone());
                self.carried_out(call, started, &json!({"error": error}), Some(error))
            }
        }
    }

    fn mails(
        &self,
        call: &CommandCall,
        operation: MailOperation,
    ) -> Result<Value, (ErrorCode, String)> {
        let context = self.context;
        // An empty list would wrongly state that no mail was sent.
        if let Some(why) = mail::notice(context.level) {
            return Err((ErrorCode::CommandUnsupported, why));
        }
        check_mail_service(call, &context.prepared.services.services).map_err(|why| {
            (
                ErrorCode::InputInvalid,
                format!("the argument service {why}"),
            )
        })?;
        let service = arg_value(call, "service").unwrap_or_default();
        match operation {
            MailOperation::Inspect => {
                let given = |name| arg_value(call, name).filter(|value| !value.is_empty());
                let asked = Inspection {
                    limit: given("limit").map_or(MESSAGES, |n| n.parse().unwrap_or(MESSAGES)),
                    recipient: given("recipient"),
                    label: given("recipient-label"),
                    subject: given("subject-marker"),
                    link: given("link-marker"),
                };
                if asked.label.is_some() && asked.recipient.is_none() {
                    let why = "recipient-label is shown in place of an address; give the address as recipient=…";
                    return Err((ErrorCode::InputInvalid, why.to_owned()));
                }
                let mut document = mail::inspect(&context.mailbox, context.redactor, &asked);
                document["service"] = json!(service);
                Ok(document)
            }
            MailOperation::Reset => Ok(json!({"removed": context.mailbox.reset()})),
        }
    }
}
