//! Tool requests of the built-in agent (the agent loop on the host) to its parent, the PHP program
//! that started the run. A PHP function answers them.
//!
//! The function decides about each call. This module only completes its result: it replaces the ids
//! that the function returned by those of the request, and turns an invalid result into a failure,
//! never into a success.

use crate::arguments;
use crate::convert::from_zval;
use crate::guard::Failure;
use ext_php_rs::types::ZendCallable;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ParentToolStatus, schema_id};

/// Calls the function with a tool request. An exception of the function ends the wait.
pub(crate) fn call(callable: &ZendCallable<'_>, request: Value) -> Result<Value, Failure> {
    let asked = request.clone();
    let answer = arguments::call(callable, "onToolRequest", request)?;
    let given = match from_zval(&answer, "onToolRequest") {
        Ok(Value::Object(map)) => Some(map),
        Ok(_) | Err(_) => None,
    };
    Ok(match given {
        Some(map) if is_result(&map) => addressed(map, &asked),
        Some(_) | None => {
            let why = "the answer of this run's caller is not a parent-tool-result/v1";
            refused(&asked, "failed", "invalid-result", why)
        }
    })
}

/// Returns the failure with which a request is answered when the caller gave no function.
pub(crate) fn unavailable(request: &Value) -> Value {
    let why = "the caller of this run offers no tools";
    refused(request, "unavailable", "unavailable", why)
}

fn refused(request: &Value, status: &str, code: &str, why: &str) -> Value {
    let error = json!({"code": code, "message": why, "retryable": false});
    let result = Map::from_iter([
        ("status".to_owned(), json!(status)),
        ("error".to_owned(), error),
    ]);
    addressed(result, request)
}

fn is_result(map: &Map<String, Value>) -> bool {
    let status = map.get("status").cloned().unwrap_or_default();
    serde_json::from_value::<ParentToolStatus>(status).is_ok()
}

/// Returns the result with the ids of the request that it answers.
fn addressed(mut result: Map<String, Value>, request: &Value) -> Value {
    result.insert("schema".to_owned(), json!(schema_id::PARENT_TOOL_RESULT));
    result.insert("version".to_owned(), json!(1));
    for name in ["request_id", "tool", "operation"] {
        result.insert(name.to_owned(), request[name].clone());
    }
    Value::Object(result)
}
