//! `WPCodebox\Native\AgentTask`: the documents about an ended agent task.
//!
//! The methods start no process and read no file: they convert one document to another, with the
//! functions that the command line uses too.
#![allow(non_snake_case)] // Parameter names are those of named arguments in PHP.

use crate::arguments::{Answer, Array, Text};
use crate::guard::guard;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::{php_class, php_impl};
use serde_json::Value;
use wp_codebox_contracts::{AgentTaskFacts, agent_task_row, agent_task_run, agent_task_started};
use wp_codebox_policy::normalise_task;

/// The PHP class for the documents about an agent task.
#[php_class]
#[php(name = "WPCodebox\\Native\\AgentTask", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct AgentTask;

#[php_impl]
impl AgentTask {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self
    }

    /// Converts the accepted forms of a task's input to the fields of a task.
    pub(crate) fn input(input: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let task = normalise_task(input.object("input")?)?;
            Ok(Answer(Value::Object(task)))
        })
    }

    /// Returns the members of a run handle that describe the task.
    pub(crate) fn started(
        input: Array<'_>,
        task: Array<'_>,
        runId: Text<'_>,
        wordpress: Text<'_>,
    ) -> PhpResult<Answer> {
        guard(|| {
            let members = agent_task_started(
                &input.object("input")?,
                &task.own_object("task")?,
                runId.utf8("runId")?,
                wordpress.utf8("wordpress")?,
            );
            Ok(Answer(Value::Object(members)))
        })
    }

    /// Returns the document about a task whose run has ended.
    #[php(defaults(preview = Array::default_list(&[])))]
    pub(crate) fn answer(
        input: Array<'_>,
        task: Array<'_>,
        result: Array<'_>,
        model: Array<'_>,
        wordpress: Text<'_>,
        preview: Array<'_>,
    ) -> PhpResult<Answer> {
        guard(|| {
            let facts = AgentTaskFacts {
                input: &input.object("input")?,
                task: &task.own_object("task")?,
                result: &result.own_object("result")?,
                model: &model.object("model")?,
                preview: &preview.own_object("preview")?,
                wordpress: wordpress.utf8("wordpress")?,
            };
            let document = agent_task_run(&facts)?;
            Ok(Answer(Value::Object(document)))
        })
    }

    /// Returns the row of a task in a batch or fan-out, from the document about the task.
    pub(crate) fn row(document: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let document = document.own_object("document")?;
            Ok(Answer(Value::Object(agent_task_row(&document))))
        })
    }
}
