//! Checkpoints: snapshots of a run in its scratch directory, which are removed with the run.

use super::base::Base;
use super::requests::check_request;
use crate::session::Session;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wp_codebox_artifacts::Durability;
use wp_codebox_contracts::{
    CodedError, CommandCall, ErrorBody, ErrorCode, EventType, IsolationLevel, SandboxSnapshot,
    SnapshotRequest, schema_id,
};
use wp_codebox_policy::arg_value;
use wp_codebox_runtime::{SnapshotError, SnapshotScope, SnapshotStore};

/// Maximum number of checkpoints of a run. Each checkpoint is a copy of all files that the guest
/// has written.
const MOST: usize = 16;
/// Name of the creator in the documents of checkpoints.
const ACTOR: &str = "run";

/// Result of a checkpoint command.
pub(crate) struct Checkpointed {
    /// Document in the form `runtime-checkpoint-result/v1` or `runtime-checkpoint-failure/v1`.
    pub document: Value,
    /// Error of the checkpoint command, if it failed.
    pub error: Option<ErrorBody>,
}

/// What a checkpoint command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Restore,
    List,
}

impl Operation {
    fn of(command: &str) -> Option<Self> {
        match command {
            "wp-codebox.checkpoint-create" => Some(Self::Create),
            "wp-codebox.checkpoint-restore" => Some(Self::Restore),
            "wp-codebox.checkpoint-list" => Some(Self::List),
            _ => None,
        }
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Create => ("create", "created"),
            Self::Restore => ("restore", "restored"),
            Self::List => ("list", "listed"),
        }
    }
}

impl Session<'_, '_> {
    /// Runs a checkpoint command. An error means that an event of the run could not be recorded, or
    /// that the command is not a checkpoint command.
    pub(crate) fn checkpoint(&mut self, call: &CommandCall) -> Result<Checkpointed, ErrorBody> {
        let operation = Operation::of(&call.command).ok_or_else(|| {
            let message = format!("{} is not a checkpoint command", call.command);
            ErrorBody::new(ErrorCode::CommandUnknown, message)
        })?;
        let name = arg_value(call, "name").unwrap_or_default().to_owned();
        let scratch = self.context.run_dir.scratch("checkpoints");
        let shelf = SnapshotStore::at(scratch?);
        let done = match operation {
            Operation::Create => self.create(&shelf, call, &name),
            Operation::Restore => self.bring_back(&shelf, &name),
            Operation::List => supported(self.context.level).map(|()| {
                let rows = shelf.list(SnapshotScope::Any);
                json!({"checkpoints": rows.iter().map(row).collect::<Vec<_>>()})
            }),
        };
        Ok(match done {
            Ok(part) => Checkpointed {
                document: result(operation, part),
                error: None,
            },
            Err(error) => Checkpointed {
                document: failure(operation, &name, &error),
                error: Some(error),
            },
        })
    }

    fn create(
        &mut self,
        shelf: &SnapshotStore,
        call: &CommandCall,
        name: &str,
    ) -> Result<Value, ErrorBody> {
        supported(self.context.level)?;
        let request = request(call, name)?;
        check_request(&request)?;
        let made = shelf.list(SnapshotScope::Any);
        let refused = |what: String| Err(ErrorBody::new(ErrorCode::InputInvalid, what));
        if made.iter().any(|one| one.name == name) {
            return refused(format!(
                "a checkpoint {name:?} already exists; use another name"
            ));
        }
        if made.len() >= MOST {
            return refused(format!(
                "the run already has {MOST} checkpoints, which is the limit"
            ));
        }
        let kept = self.keep(shelf, &request, ACTOR, &[], Durability::Unsynced)?;
        self.told(EventType::CheckpointCreated, &kept, ACTOR)?;
        Ok(json!({"checkpoint": row(&kept)}))
    }

    fn bring_back(&mut self, shelf: &SnapshotStore, name: &str) -> Result<Value, ErrorBody> {
        supported(self.context.level)?;
        let made = shelf.list(SnapshotScope::Any);
        let one = made.iter().find(|one| one.name == name).ok_or_else(|| {
            SnapshotError::NotFound {
                reference: name.to_owned(),
            }
            .body()
        })?;
        let base = Base::open(self.context, shelf, &one.id)?;
        self.replace(Some(Arc::new(base)))?;
        self.told(EventType::CheckpointRestored, one, ACTOR)?;
        Ok(json!({"checkpoint": row(one)}))
    }
}

fn supported(level: IsolationLevel) -> Result<(), ErrorBody> {
    match level {
        IsolationLevel::Full => Ok(()),
        IsolationLevel::Reduced | IsolationLevel::None => Err(ErrorBody::new(
            ErrorCode::CommandUnsupported,
            "checkpoints need isolation level full: at level reduced a guest has no overlay layers to store",
        )),
    }
}

fn request(call: &CommandCall, name: &str) -> Result<SnapshotRequest, ErrorBody> {
    let refused = |what: String| Err(ErrorBody::new(ErrorCode::InputInvalid, what));
    let mut filters = call.args.iter().filter_map(|arg| arg.split_once('='));
    // A blank filter selects everything, as a missing one does.
    if let Some((filter, _)) =
        filters.find(|(name, value)| name.starts_with("snapshot-") && !value.trim().is_empty())
    {
        return refused(format!(
            "{filter} is not supported: remove it; a checkpoint always contains all files and the database"
        ));
    }
    let given = arg_value(call, "metadata-json").filter(|text| !text.trim().is_empty());
    let metadata = match given.map(serde_json::from_str) {
        None => Map::new(),
        Some(Ok(Value::Object(metadata))) => metadata,
        Some(_) => return refused("metadata-json must be a JSON object".to_owned()),
    };
    Ok(SnapshotRequest {
        name: name.to_owned(),
        metadata,
    })
}

fn row(kept: &SandboxSnapshot) -> Value {
    json!({
        "id": kept.id, "name": kept.name, "createdAt": kept.created_at,
        "semantics": kept.semantics, "metadata": kept.metadata, "bytes": kept.total_bytes,
        "digest": {"algorithm": "sha256", "value": kept.digest},
    })
}

fn result(operation: Operation, part: Value) -> Value {
    let (operation, status) = operation.names();
    let mut document = json!({
        "schema": schema_id::RUNTIME_CHECKPOINT_RESULT,
        "command": format!("wp-codebox.checkpoint-{operation}"),
        "status": status,
        "operation": operation,
    });
    if let (Some(members), Value::Object(part)) = (document.as_object_mut(), part) {
        members.extend(part);
    }
    document
}

fn failure(operation: Operation, name: &str, error: &ErrorBody) -> Value {
    let (status, code) = match error.code {
        ErrorCode::CommandUnsupported => ("unsupported", "runtime-checkpoints-unsupported"),
        ErrorCode::SnapshotNotFound => ("not-found", "runtime-checkpoint-not-found"),
        ErrorCode::InputInvalid => ("invalid-request", "runtime-checkpoint-invalid-request"),
        _ => ("failed", "runtime-checkpoint-failed"),
    };
    let mut document = json!({
        "schema": schema_id::RUNTIME_CHECKPOINT_FAILURE,
        "command": format!("wp-codebox.checkpoint-{}", operation.names().0),
        "status": status,
        "operation": operation.names().0,
        "backend": "native",
        "code": code,
        "message": error.message,
        "supported": status != "unsupported",
        "error": {"code": error.code, "message": error.message},
    });
    if !name.is_empty() {
        document["name"] = json!(name);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(args: &[&str]) -> CommandCall {
        CommandCall {
            command: "wp-codebox.checkpoint-create".to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
        }
    }

    #[test]
    fn checkpoint_command_with_a_table_or_directory_filter_or_invalid_metadata_is_rejected() {
        let fine = call(&["name=a", r#"metadata-json={"k":1}"#]);
        assert_eq!(request(&fine, "a").unwrap().metadata["k"], 1);
        let blank = call(&["name=a", "metadata-json=", "snapshot-database-tables="]);
        assert!(request(&blank, "a").unwrap().metadata.is_empty());
        for args in [
            &["name=a", "snapshot-database-tables=wp_posts"][..],
            &["name=a", "snapshot-include-wp-content=uploads"],
            &["name=a", "metadata-json=[]"],
            &["name=a", "metadata-json=x"],
        ] {
            let error = request(&call(args), "a").unwrap_err();
            assert_eq!(error.code, ErrorCode::InputInvalid, "{args:?}");
        }
    }

    #[test]
    fn status_of_a_checkpoint_failure_follows_from_its_error_code() {
        for (code, status, supported) in [
            (ErrorCode::CommandUnsupported, "unsupported", false),
            (ErrorCode::SnapshotNotFound, "not-found", true),
            (ErrorCode::InputInvalid, "invalid-request", true),
            (ErrorCode::SandboxInUse, "failed", true),
        ] {
            let document = failure(Operation::Restore, "a", &ErrorBody::new(code, "why"));
            assert_eq!(document["status"], status);
            assert_eq!(document["supported"], supported);
            assert_eq!(document["operation"], "restore");
            assert_eq!(document["command"], "wp-codebox.checkpoint-restore");
        }
    }
}
