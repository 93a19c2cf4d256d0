//! Formats settings: one row for each, with its value and the origin of the value.

use super::source::{Chosen, Origin};
use super::{Settings, file};
use serde_json::{Value, json};
use std::path::Path;

impl Settings {
    /// Returns all settings as JSON rows: `name`, `value`, `origin`, `detail`.
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        self.chosen.iter().map(|row| self.row(row)).collect()
    }

    /// Returns the path of the configuration file that was read.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    fn row(&self, row: &Chosen) -> Value {
        let names = row.setting.names();
        let (origin, detail) = match &row.origin {
            Origin::Flag => ("flag", names.flag.unwrap_or_default().to_owned()),
            Origin::Environment => ("environment", names.variable.to_owned()),
            Origin::File => {
                let file = self.file.as_ref().map(|file| file.display().to_string());
                ("file", file.unwrap_or_default())
            }
            Origin::Found(why) => ("found", why.clone()),
            Origin::Default => ("default", String::new()),
        };
        json!({
            "name": names.key,
            "value": row.value.as_ref().map(|value| value.to_string_lossy()),
            "origin": origin,
            "detail": detail,
            "flag": names.flag,
            "variable": names.variable,
        })
    }

    /// Returns a line that names the configuration file that was read, or the paths at which one
    /// would be read.
    #[must_use]
    pub fn file_line(&self) -> String {
        match &self.file {
            Some(path) => format!("configuration file: {}", path.display()),
            None => format!(
                "configuration file: none; {} would be read",
                file::candidates()
            ),
        }
    }
}
