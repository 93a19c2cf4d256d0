//! Makes a task from a request, on the submitting host.

use super::document::{
    ClusterTask, PROVENANCE, SCHEMA, SecretName, TaskAgentBundle, TaskComponent, TaskFile,
    TaskMount, TaskSource, TaskWrapper, WorkTree,
};
use super::error::TaskError;
use crate::layers::PackRules;
use crate::values::SecretValues;
use wp_codebox_contracts::{
    AgentBundle, Component, GeneratedDirectory, GeneratedFrom, GitChoice, MountRequest,
    OuterSandbox, RunPaths, RunRequest, SecretBinding, Sha256Hex, StagedFile, TaskInput, Workflow,
};
use zeroize::Zeroizing;

/// The document is not searched for values shorter than this, which occur in ordinary text.
const SHORTEST_VALUE: usize = 8;

/// Opens, checks and uploads the directories and files that a request names.
pub trait InputSource {
    /// Uploads a directory. `subject` names it in errors, without its host path. Also returns whether
    /// it lies in a git work tree.
    fn directory(
        &mut self,
        path: &str,
        subject: &str,
        rules: &PackRules,
    ) -> Result<(Sha256Hex, WorkTree), TaskError>;
    /// Uploads the WordPress core.
    fn wordpress(&mut self, path: &str) -> Result<Sha256Hex, TaskError>;
    /// Adds a file to the layer of single files, and returns its name there.
    fn file(&mut self, path: &str, subject: &str) -> Result<String, TaskError>;
    /// Uploads the layer of single files; `None` if no file was added.
    fn files(&mut self) -> Result<Option<Sha256Hex>, TaskError>;
}

impl ClusterTask {
    /// Makes a task from a request, and separates the values of its secrets. Everything that the
    /// request refers to on this host is uploaded before.
    ///
    /// # Errors
    /// [`TaskError::Unsupported`] for a field that needs this host, [`TaskError::SecretInTask`], and
    /// the errors of `inputs`.
    pub fn of_request(
        request: RunRequest,
        inputs: &mut dyn InputSource,
    ) -> Result<(Self, SecretValues), TaskError> {
        // A field that is new in a request must be handled here; `..` would leave it out silently.
        let RunRequest {
            schema: _,
            run_id,
            site: _,
            mode: _,
            max_runs: _,
            // The submitting host has checked it; a node serves many sites.
            share: _,
            paths,
            task,
            follow_up,
            policy,
            mounts,
            seeds,
            activate,
            commands,
            workflow,
            hold,
            agent,
            model,
            tool_policy,
            parent_tools,
            components,
            agent_bundles,
            checks,
            limits,
            services,
            find_renames,
            secrets,
            outer_sandbox,
            placement: _,
            redact,
            provenance,
        } = request;
        // All of these are settings of a host; a node has its own.
        let RunPaths {
            state_dir: _,
            share_dir: _,
            launcher: _,
            php_binary: _,
            wordpress,
            denied: _,
            code_roots: _,
            allowed_roots: _,
            cgroup: _,
            identity: _,
            guest_ids: _,
            agents_dir: _,
            browser: _,
        } = paths;
        refuse(
            "follow_up_of",
            follow_up.is_some(),
            "the earlier bundle is in the store of this host; run the task on this host",
        )?;
        refuse(
            "hold",
            hold.is_some(),
            "a sandbox that stays open, and its preview, can be reached only on this host; run the task on this host",
        )?;
        refuse(
            "parent_tools",
            parent_tools.is_some(),
            "this site serves the tools; leave them out or run the task on this host",
        )?;
        refuse(
            "provenance.cluster",
            provenance.contains_key(PROVENANCE),
            "the node sets this member itself; use another name",
        )?;
        let made = workflow.as_ref().map(|workflow| workflow.made.clone());
        let made = made.unwrap_or_default();
        let wordpress = inputs.wordpress(&wordpress)?;
        let mounts = mounts
            .into_iter()
            .enumerate()
            .map(|(index, row)| mount(index, row, &made, inputs))
            .collect::<Result<_, _>>()?;
        let components = components
            .into_iter()
            .map(|row| component(row, &made, inputs))
            .collect::<Result<_, _>>()?;
        let (task, staged) = of_task(task, inputs)?;
        let (workflow, workflow_staged) = of_workflow(workflow, inputs)?;
        let agent_bundles = agent_bundles
            .into_iter()
            .map(|row| agent_bundle(row, inputs))
            .collect::<Result<_, _>>()?;
        let (secrets, values) = separate(secrets, redact);
        let made = Self {
            schema: SCHEMA.to_owned(),
            run_id,
            wordpress,
            files: inputs.files()?,
            task,
            staged,
            policy,
            mounts,
            seeds,
            activate,
            commands,
            workflow,
            workflow_staged,
            agent,
            model,
            tool_policy,
            components,
            agent_bundles,
            checks,
            limits,
            services,
            find_renames,
            secrets,
            redact: values.redact.len() as u64,
            outer_sandbox: wrapper(outer_sandbox)?,
            provenance,
        };
        refuse_values(&made, &values)?;
        Ok((made, values))
    }
}

fn refuse(field: &str, is_set: bool, why: &'static str) -> Result<(), TaskError> {
    match is_set {
        false => Ok(()),
        true => Err(TaskError::Unsupported {
            field: field.to_owned(),
            why,
        }),
    }
}

fn mount(
    index: usize,
    row: MountRequest,
    made: &[GeneratedDirectory],
    inputs: &mut dyn InputSource,
) -> Result<TaskMount, TaskError> {
    let MountRequest {
        source,
        target,
        mode,
        exclude,
        git,
        metadata,
    } = row;
    refuse(
        &format!("mounts[{index}].git"),
        git == GitChoice::History,
        "the history is in the repository of this host; use --git baseline, or run the task on this host",
    )?;
    let subject = format!("the source of mount {target}");
    let (source, work_tree) = placed(&source, &target, &subject, made, inputs)?;
    Ok(TaskMount {
        source,
        target,
        mode,
        exclude,
        git,
        work_tree,
        metadata,
    })
}

fn component(
    row: Component,
    made: &[GeneratedDirectory],
    inputs: &mut dyn InputSource,
) -> Result<TaskComponent, TaskError> {
    let Component {
        slug,
        source,
        load_as,
        entry,
        activate,
        required,
        readiness_probe,
    } = row;
    let subject = format!("component {slug}");
    let (source, _) = placed(&source, &slug, &subject, made, inputs)?;
    Ok(TaskComponent {
        slug,
        source,
        load_as,
        entry,
        activate,
        required,
        readiness_probe,
    })
}

/// Uploads the source of a mount or component. `name` is its name in `made`, the directories that
/// the recipe generates.
fn placed(
    source: &str,
    name: &str,
    subject: &str,
    made: &[GeneratedDirectory],
    inputs: &mut dyn InputSource,
) -> Result<(TaskSource, WorkTree), TaskError> {
    let row = made.iter().find(|row| row.of == name);
    let rules = match row.map(|row| &row.from) {
        None => PackRules::whole(),
        // What the recipe leaves out must not leave this host.
        Some(GeneratedFrom::Copy { without }) => PackRules::without(without),
        Some(GeneratedFrom::Archive { .. }) => {
            let name = inputs.file(source, subject)?;
            return Ok((TaskSource::File(name), WorkTree::Outside));
        }
        Some(GeneratedFrom::Files { .. }) => {
            return Ok((TaskSource::Generated, WorkTree::Outside));
        }
    };
    let (digest, work_tree) = inputs.directory(source, subject, &rules)?;
    Ok((TaskSource::Layer(digest), work_tree))
}

fn of_task(
    task: Option<TaskInput>,
    inputs: &mut dyn InputSource,
) -> Result<(Option<TaskInput>, Vec<TaskFile>), TaskError> {
    let Some(task) = task else {
        return Ok((None, Vec::new()));
    };
    let TaskInput {
        schema,
        version,
        texts,
        target,
        allowed_tools,
        expected_artifacts,
        structured_artifacts,
        staged_files,
        tool_bridge,
        parent_tool_bridge,
        sandbox_tool_policy,
        policy,
        context,
    } = task;
    let staged = staged(staged_files, inputs)?;
    let task = TaskInput {
        schema,
        version,
        texts,
        target,
        allowed_tools,
        expected_artifacts,
        structured_artifacts,
        staged_files: Vec::new(),
        tool_bridge,
        parent_tool_bridge,
        sandbox_tool_policy,
        policy,
        context,
    };
    Ok((Some(task), staged))
}

fn of_workflow(
    workflow: Option<Workflow>,
    inputs: &mut dyn InputSource,
) -> Result<(Option<Workflow>, Vec<TaskFile>), TaskError> {
    let Some(workflow) = workflow else {
        return Ok((None, Vec::new()));
    };
    let Workflow {
        steps,
        collect,
        env,
        staged: files_of_host,
        files,
        made,
        uncaptured,
        workspace_rule,
        php_ini,
    } = workflow;
    let staged = staged(files_of_host, inputs)?;
    let workflow = Workflow {
        steps,
        collect,
        env,
        staged: Vec::new(),
        files,
        made,
        uncaptured,
        workspace_rule,
        php_ini,
    };
    Ok((Some(workflow), staged))
}

fn staged(
    files: Vec<StagedFile>,
    inputs: &mut dyn InputSource,
) -> Result<Vec<TaskFile>, TaskError> {
    let place = |StagedFile { source, target }| {
        let name = inputs.file(&source, &format!("the source of staged file {target}"))?;
        Ok(TaskFile { name, target })
    };
    files.into_iter().map(place).collect()
}

fn agent_bundle(
    row: AgentBundle,
    inputs: &mut dyn InputSource,
) -> Result<TaskAgentBundle, TaskError> {
    let AgentBundle {
        source,
        bundle,
        slug,
        on_conflict,
        owner_id,
        token_env,
        import_principal,
    } = row;
    let file = source.map(|path| inputs.file(&path, "the file of an agent bundle"));
    Ok(TaskAgentBundle {
        file: file.transpose()?,
        bundle,
        slug,
        on_conflict,
        owner_id,
        token_env,
        import_principal,
    })
}

fn wrapper(given: OuterSandbox) -> Result<TaskWrapper, TaskError> {
    let OuterSandbox {
        kind,
        program,
        need,
    } = given;
    refuse(
        "outer_sandbox.program",
        program.is_some(),
        "it is a path of this host; leave it out, so that the node's own program is used",
    )?;
    Ok(TaskWrapper { kind, need })
}

fn separate(secrets: Vec<SecretBinding>, redact: Vec<String>) -> (Vec<SecretName>, SecretValues) {
    let mut values = SecretValues {
        redact: redact.into_iter().map(Zeroizing::new).collect(),
        ..SecretValues::default()
    };
    let mut names = Vec::new();
    for SecretBinding { env, value, hosts } in secrets {
        values.secrets.insert(env.clone(), Zeroizing::new(value));
        names.push(SecretName { env, hosts });
    }
    (names, values)
}

/// Fails if the document contains a secret value, as it is or as JSON writes it. The message server
/// stores the document as plain text.
fn refuse_values(task: &ClusterTask, values: &SecretValues) -> Result<(), TaskError> {
    let bytes = task.to_bytes()?;
    let text = String::from_utf8_lossy(&bytes);
    let is_in = |value: &str| {
        let escaped = Zeroizing::new(serde_json::Value::from(value).to_string());
        let escaped = escaped.trim_matches('"');
        value.len() >= SHORTEST_VALUE && (text.contains(value) || text.contains(escaped))
    };
    let found = |name: &str| {
        Err(TaskError::SecretInTask {
            name: name.to_owned(),
        })
    };
    if let Some((name, _)) = values.secrets.iter().find(|(_, value)| is_in(value)) {
        return found(name);
    }
    match values.redact.iter().any(|value| is_in(value)) {
        true => found("redact"),
        false => Ok(()),
    }
}
