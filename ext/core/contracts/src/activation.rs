//! Plugins and themes of a run that each of its guests activates.

use crate::string_enum;
use serde::{Deserialize, Serialize};

string_enum! {
    /// What is activated.
    pub enum ActivationKind {
        /// A plugin.
        Plugin = "plugin",
        /// A theme.
        Theme = "theme",
    }
}

/// A mounted plugin or theme that is activated in each guest before other programs run there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activation {
    /// Plugin or theme.
    pub kind: ActivationKind,
    /// Main file of the plugin below the plugins directory, such as `shop/shop.php`, or directory
    /// of the theme.
    pub name: String,
    /// Whether a failed activation ends the run. Otherwise the run goes on without it, and the
    /// agent gets the error.
    #[serde(default)]
    pub required: bool,
}
