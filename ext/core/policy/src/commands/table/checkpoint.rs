//! Commands that save and restore the state of the sandbox.

use super::super::model::{CommandDescriptor as Row, CommandGroup::Checkpoint, Handler};
use super::args::{object, snapshot_args, text};

const SCHEMA: &str = "wp-codebox/runtime-checkpoint-result/v1";

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "wp-codebox.checkpoint-create",
        Checkpoint,
        Handler::Checkpoint,
        "Saves the current state of the sandbox under a name.",
    )
    .args(snapshot_args![
        text("name", "Name of the checkpoint, new in this run.").required(),
        object(
            "metadata-json",
            "Free-form data stored with the checkpoint."
        ),
    ])
    .prints("JSON {schema, command, status: created, operation, checkpoint}")
    .schema(SCHEMA),
    Row::new(
        "wp-codebox.checkpoint-restore",
        Checkpoint,
        Handler::Checkpoint,
        "Replaces the run's guest with a new one that has the state of a checkpoint.",
    )
    .args(&[text("name", "Name of the checkpoint.").required()])
    .prints("JSON {schema, command, status: restored, operation, checkpoint}")
    .schema(SCHEMA),
    Row::new(
        "wp-codebox.checkpoint-list",
        Checkpoint,
        Handler::Checkpoint,
        "Lists the checkpoints of this run.",
    )
    .prints("JSON {schema, command, status: listed, operation, checkpoints}")
    .schema(SCHEMA),
];
