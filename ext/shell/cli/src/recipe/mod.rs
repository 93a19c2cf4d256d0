//! `wp-codebox recipe`, `recipe-run`, `validate-blueprint`, `workspace-policy`.

mod args;
mod build;
mod check;
mod human;
mod run;

pub(crate) use args::{
    BlueprintArgs, FallbackArgs, RecipeArgs, RecipeBuildArgs, RecipeCommand, RecipeRunArgs,
    StepsArgs, WorkspacePolicyArgs, WorkspacePolicyCommand,
};
pub(crate) use check::{read_blueprint, validate_blueprint, workspace_policy};
pub(crate) use run::{Executed, RunChoice, execute, recipe_run};

use super::output::Output;
use super::request;
use serde_json::Value;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, RunPaths};
use wp_codebox_recipe::{Context, PolicyChoice, WpFallback, dry_run, validation};
use wp_codebox_runs::{Host, Loaded, load};
use wp_codebox_settings::Settings;
use wp_codebox_wordpress::{Network, Silent, Source};

/// `recipe validate`, `recipe dry-run` and `recipe build`.
pub(crate) fn main(output: &Output, command: &RecipeCommand) -> ExitCode {
    match command {
        RecipeCommand::Validate(args) => match look(args) {
            Ok(looked) => validated(*output, &looked),
            Err(error) => output.failure("recipe validate", &error),
        },
        RecipeCommand::DryRun(args) => match look(args) {
            Ok(looked) => planned(*output, &looked),
            Err(error) => output.failure("recipe dry-run", &error),
        },
        RecipeCommand::Build(args) => build::main(*output, args),
    }
}

fn validated(output: Output, looked: &Looked) -> ExitCode {
    let document = looked.validation();
    if output.is_json() {
        output.document(&document);
    } else {
        human::validation(output, &document);
    }
    status(&document)
}

/// Prints everything that a recipe would do.
fn planned(output: Output, looked: &Looked) -> ExitCode {
    let document = looked.dry_run();
    if output.is_json() {
        output.document(&document);
    } else {
        human::plan(output, &document);
    }
    status(&document)
}

fn status(document: &Value) -> ExitCode {
    if document["success"] == true {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}

fn look(args: &RecipeArgs) -> Result<Looked, ErrorBody> {
    let mut settings = Settings::resolve(&args.paths)?;
    settings.wp_fallback = args.fallback.choice();
    Looked::at(&args.recipe, args.policy.as_deref(), &settings)
}

/// A loaded recipe, and the files and settings of this host against which it is validated.
pub(crate) struct Looked {
    pub(crate) loaded: Loaded,
    pub(crate) host: Host,
    paths: RunPaths,
    policy: Option<Value>,
}

impl Looked {
    fn at(
        recipe: &std::path::Path,
        policy: Option<&str>,
        settings: &Settings,
    ) -> Result<Self, ErrorBody> {
        Self::of(load(recipe)?, policy, settings)
    }

    /// Finds the WordPress and the policy of a loaded recipe.
    pub(crate) fn of(
        loaded: Loaded,
        policy: Option<&str>,
        settings: &Settings,
    ) -> Result<Self, ErrorBody> {
        let policy = policy.map(request::policy_document).transpose()?;
        let runtime = loaded.recipe.as_ref().ok().map(|recipe| &recipe.runtime);
        let own = runtime
            .and_then(|runtime| runtime.assets.as_ref()?.wordpress_directory.as_ref())
            .map(|directory| loaded.directory.join(directory));
        let zip = runtime
            .and_then(|runtime| runtime.assets.as_ref()?.wordpress_zip.as_ref())
            .map(|zip| loaded.directory.join(zip))
            .filter(|zip| own.is_none() && zip.is_file());
        // Ignore a missing zip: the validation reports it. The core of a zip is stored in the
        // cache, where the next run finds it.
        let of_zip = zip
            .map(|zip| {
                let cores = &settings.cores;
                let core = cores.install(&Source::Zip(zip), Network::Offline, &Silent)?;
                Ok::<_, ErrorBody>(core.path)
            })
            .transpose()?;
        let wanted = runtime.and_then(|runtime| runtime.wp.as_deref());
        let found = own.or(of_zip).or_else(|| settings.fitting(wanted));
        let found = found.or_else(|| match settings.wp_fallback {
            WpFallback::Nearest => settings.nearest(wanted?),
            WpFallback::Refuse => None,
        });
        // If no core has the wanted version, use another one: the validation reports that.
        let found = found.or_else(|| settings.wordpress.clone());
        let found = found.or_else(|| settings.cores.find(None));
        // Without a WordPress, validation works with an unknown version; `recipe-run` installs one.
        let wordpress = found.unwrap_or_default();
        let paths = request::run_paths(settings, &wordpress)?;
        Ok(Self {
            host: Host::new(
                loaded.directory.clone(),
                paths.clone(),
                settings.wp_fallback,
                request::environment,
            )?,
            loaded,
            paths,
            policy,
        })
    }

    /// Returns whether this host has no WordPress for the recipe yet.
    pub(crate) fn lacks_wordpress(&self) -> bool {
        self.paths.wordpress.is_empty()
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            sources: &self.host,
            policy: match &self.policy {
                None => PolicyChoice::Derived,
                Some(document) => PolicyChoice::Given(document),
            },
        }
    }

    fn validation(&self) -> Value {
        let recipe = self.loaded.recipe.as_ref().map_err(Vec::as_slice);
        validation(&self.loaded.shown, recipe, self.context())
    }

    fn dry_run(&self) -> Value {
        let recipe = self.loaded.recipe.as_ref().map_err(Vec::as_slice);
        dry_run(&self.loaded.shown, recipe, self.context())
    }
}
