//! What a browser command must do, after its arguments have been parsed.

use super::asserts::Assertion;
use super::capture_kind::Capture;
use super::environment::Environment;
use super::step_spec::{StepSpec, WaitFor};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use wp_codebox_contracts::SITE_ORIGIN;
use wp_codebox_policy::Host;

/// User that the browser is logged in as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// The browser is not logged in.
    Nobody,
    /// The user with this id, or without an id the first administrator.
    User(Option<u64>),
}

/// Kind of a browser command, with the arguments that only this kind has.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Loads one page, checks assertions, and captures what the caller asked for.
    Probe,
    /// Loads a page of the site's front end or administration.
    PageLoad {
        /// Part of the site: `frontend` or `admin`.
        surface: String,
    },
    /// Returns the HTML of a page.
    Html,
    /// Executes steps, such as clicks, on a page.
    Actions {
        /// Steps to execute, in order.
        steps: Vec<StepSpec>,
        /// Name of the scenario that contains the steps, if the caller gave one.
        name: Option<String>,
    },
    /// Opens the block editor and works in it.
    Editor(EditorTask),
    /// Compares the appearance of two pages.
    Compare(Box<CompareTask>),
}

/// What to do in the block editor.
#[derive(Debug, Clone, PartialEq)]
pub struct EditorTask {
    /// Element that must be visible, in the editor or its canvas, before the editor counts as open.
    pub wait_selector: Option<String>,
    /// Timeout for opening the editor.
    pub wait_timeout: Duration,
    /// What to do after the editor is open.
    pub act: EditorAct,
}

/// What to do in the opened block editor.
#[derive(Debug, Clone, PartialEq)]
pub enum EditorAct {
    /// Reports post and blocks.
    Open,
    /// Reports frame, layout and blocks of the canvas.
    Probe(CanvasProbe),
    /// Executes steps.
    Steps(Vec<StepSpec>),
    /// Validates blocks.
    Validate {
        /// Serialised blocks; `None`: the blocks of the opened post.
        content: Option<String>,
        /// Name of the validator in the result.
        provider: String,
    },
}

/// Selectors of the parts of the editor's canvas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanvasProbe {
    /// Frame element of the canvas.
    pub frame: String,
    /// Layout in the canvas.
    pub layout: String,
    /// Blocks in the canvas.
    pub block: String,
    /// Groups of selectors to count: name and selectors.
    pub groups: Vec<(String, Vec<String>)>,
}

/// Which pictures to compare, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareTask {
    /// The reference.
    pub source: CompareSide,
    /// What is compared with the reference.
    pub candidate: CompareSide,
    /// Style sheet that is added to each page.
    pub style: String,
    /// Whether videos and animated images show only their first frame.
    pub media: AnimatedMedia,
    /// Whether the screenshots show the whole page.
    pub extent: Extent,
    /// When a pixel counts as different.
    pub rule: PixelRule,
    /// Maximum number of regions in the result.
    pub max_regions: usize,
    /// Maximum number of elements to inspect in a page.
    pub max_elements: usize,
    /// Maximum number of elements per region in the result.
    pub max_candidates: usize,
    /// Selectors of elements whose position the result compares.
    pub explain: Vec<String>,
}

/// One of the two sides of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompareSide {
    /// Name in the result.
    pub label: String,
    /// Page or picture.
    pub from: CompareInput,
    /// Path of a stored DOM snapshot that belongs to a stored picture.
    pub snapshot: Option<String>,
}

/// Where the picture of one side of a comparison comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompareInput {
    /// URL of a page.
    Page(String),
    /// Path of a stored PNG.
    Stored(String),
}

/// Whether videos and animated images play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnimatedMedia {
    Plays,
    FirstFrame,
}

/// Part of a page that a screenshot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Viewport,
    FullPage,
}

/// When a pixel counts as different.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelRule {
    /// Difference of colour, from 0 to 1, above which a pixel counts.
    pub threshold: f64,
    /// Whether pixels that differ only by anti-aliasing count.
    pub antialiased: Antialiased,
}

/// Whether pixels that differ only by anti-aliasing count as different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Antialiased {
    Counts,
    Ignored,
}

/// What a browser command must do.
#[derive(Debug, Clone)]
pub struct Task {
    /// Kind of the browser command.
    pub work: Work,
    /// URL to load first; `None` when the first step navigates.
    pub url: Option<String>,
    /// Load stage at which a navigation counts as complete.
    pub wait_for: WaitFor,
    /// How long to observe the page after it has loaded.
    pub duration: Duration,
    /// Timeout of the whole command.
    pub timeout: Duration,
    /// Timeout of a step that sets none.
    pub step_timeout: Duration,
    /// Maximum time without an event of the browser while a page loads.
    pub stall: Option<Duration>,
    /// Device, locale, network speed and permissions that the browser emulates.
    pub environment: Environment,
    /// Profiles with which the page is loaded one after the other, by name; the first one is that
    /// of `environment`. Empty: the page is loaded once.
    pub profiles: Vec<(String, Environment)>,
    /// User that the browser is logged in as.
    pub auth: Auth,
    /// Initial cookies and local storage: JSON, the name of a session or actor, or the path of a
    /// file in the guest.
    pub storage: Option<String>,
    /// Script that runs before the page's own scripts.
    pub pre_script: Option<String>,
    /// Script to run in the loaded page; the result contains its value.
    pub script: Option<String>,
    /// Assertions to check at the end, in order.
    pub asserts: Vec<Assertion>,
    /// Selectors of elements that the result reports.
    pub observe: Vec<String>,
    /// What to capture of the page for the bundle.
    pub capture: Vec<Capture>,
    /// Maximum number of elements of a DOM snapshot.
    pub snapshot_elements: usize,
    /// Subdirectory of the command's directory for its files; `None` for no subdirectory.
    pub prefix: Option<String>,
    /// Whether the first failed assertion ends the checks.
    pub fail_fast: bool,
    /// Hosts to which requests are restricted, among those that the policy allows. If the list is
    /// empty, requests may reach every host that the policy allows.
    pub only_hosts: Vec<Host>,
    /// Hosts that requests must not reach, even if the policy allows them.
    pub never_hosts: Vec<Host>,
    /// Whether requests may reach other hosts than the site.
    pub external: External,
}

/// Which hosts besides the site the page's requests may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum External {
    /// All hosts that the policy allows.
    Policy,
    /// No external host.
    Deny,
}

impl Task {
    /// Returns the paths of stored files that the task reads: pictures and DOM snapshots.
    pub fn stored_files(&self) -> Vec<&str> {
        let Work::Compare(compare) = &self.work else {
            return Vec::new();
        };
        [&compare.source, &compare.candidate]
            .into_iter()
            .flat_map(|side| {
                let picture = match &side.from {
                    CompareInput::Stored(path) => Some(path.as_str()),
                    CompareInput::Page(_) => None,
                };
                picture.into_iter().chain(side.snapshot.as_deref())
            })
            .collect()
    }

    /// Returns the sessions of all actors, without duplicates.
    #[must_use]
    pub fn sessions(&self) -> BTreeSet<&str> {
        let actors = self.steps().iter().filter_map(|step| step.actor.as_ref());
        actors.map(|actor| actor.session.as_str()).collect()
    }

    /// Returns whether the command's own browser loads the page of the task: not if the first step
    /// belongs to an actor.
    #[must_use]
    pub fn begins_itself(&self) -> bool {
        self.steps().first().is_none_or(|step| step.actor.is_none())
    }

    /// Returns the steps of the task.
    pub(super) fn steps(&self) -> &[StepSpec] {
        match &self.work {
            Work::Actions { steps, .. } => steps,
            Work::Editor(EditorTask {
                act: EditorAct::Steps(steps),
                ..
            }) => steps,
            Work::Editor(_)
            | Work::Probe
            | Work::PageLoad { .. }
            | Work::Html
            | Work::Compare(_) => &[],
        }
    }
}

/// Contents of the stored files that a task reads, by path.
pub type StoredFiles = std::collections::BTreeMap<String, Vec<u8>>;

/// Reads a stored DOM snapshot, `{elements: [...]}`; the error text is one sentence.
pub(super) fn snapshot_elements(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let document: Value =
        serde_json::from_slice(bytes).map_err(|e| format!("the DOM snapshot is not JSON: {e}"))?;
    let elements = document.get("elements").and_then(Value::as_array);
    elements
        .cloned()
        .ok_or_else(|| "the DOM snapshot has no list of elements".to_owned())
}

/// Converts a path of the site or an absolute URL to the URL to load; fails for anything else.
pub(super) fn address(text: &str) -> Result<String, String> {
    let fits = text.len() <= 4096 && !text.chars().any(|c| c.is_control() || c == ' ');
    if fits && text.starts_with('/') && !text.starts_with("//") {
        return Ok(format!("{SITE_ORIGIN}{text}"));
    }
    if fits && (text.starts_with("http://") || text.starts_with("https://")) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is neither a path like /wp-admin/ nor an http:// or https:// URL"
    ))
}

/// Selector of the frame that holds the canvas of the block editor.
pub(super) const CANVAS: &str = "iframe[name=\"editor-canvas\"]";
