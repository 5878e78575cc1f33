//! `vibe cache`.

use vibe_install::{
    CacheRemovalReport, CacheVerification, cache_clean, cache_gc, cache_list, cache_path,
    cache_verify,
};

use super::App;
use crate::answer::Answer;
use crate::arguments::{CacheCommand, CacheGcArguments};
use crate::exit_code;
use crate::paste::Paste;
use crate::render;
use crate::user_error::UserError;

/// Looks at what is kept for all projects, proves it or removes it.
pub(super) fn run(app: &App<'_>, command: &CacheCommand) -> Result<Answer, UserError> {
    match command {
        CacheCommand::Path => path(app),
        CacheCommand::List => list(app),
        CacheCommand::Verify => verify(app),
        CacheCommand::Gc(arguments) => gc(app, arguments),
        CacheCommand::Clean => clean(app),
    }
}

fn path(app: &App<'_>) -> Result<Answer, UserError> {
    let paths = cache_path(&app.settings).map_err(|error| app.error(&error))?;
    Answer::view(&paths, render::cache::path_text(&paths))
}

fn list(app: &App<'_>) -> Result<Answer, UserError> {
    let listing = cache_list(&app.context()).map_err(|error| app.error(&error))?;
    Answer::view(&listing, render::cache::list_text(&listing))
}

fn verify(app: &App<'_>) -> Result<Answer, UserError> {
    let found = cache_verify(&app.context()).map_err(|error| app.error(&error))?;
    let text = render::cache::verify_text(&found, app.view().elapsed);
    let mut answer = Answer::new(&found, text)?;
    answer.exit_code = exit_code::of_cache(&found);
    answer.hints = damage_hints(&found);
    Ok(answer)
}

fn damage_hints(found: &CacheVerification) -> Vec<String> {
    let mut hints = Vec::new();
    if found.damaged.iter().any(|tree| tree.quarantined) {
        hints.push(format!(
            "what is damaged was moved out of use: the next install that needs it fetches it \
             again; a project whose files are linked to it is mended by: {}",
            Paste::default().line(&["verify", "--repair"])
        ));
    }
    let stuck = found.damaged.iter().filter(|tree| !tree.quarantined);
    hints.extend(stuck.map(|tree| {
        format!(
            "it could not be moved out of use; remove it, to have it fetched again: {}",
            tree.place.to_string_lossy()
        )
    }));
    hints
}

fn gc(app: &App<'_>, arguments: &CacheGcArguments) -> Result<Answer, UserError> {
    let report =
        cache_gc(&app.context(), arguments.unused_for).map_err(|error| app.error(&error))?;
    let mut answer = Answer::new(&report, render::cache::gc_text(&report))?;
    answer.exit_code = exit_code::of_removal(&report);
    answer.hints = again(&report, "gc");
    Ok(answer)
}

fn clean(app: &App<'_>) -> Result<Answer, UserError> {
    let report = cache_clean(&app.context()).map_err(|error| app.error(&error))?;
    let mut answer = Answer::new(&report, render::cache::clean_text(&report))?;
    answer.exit_code = exit_code::of_removal(&report);
    answer.hints = again(&report, "clean");
    Ok(answer)
}

/// What to do where not all was removed.
fn again(report: &CacheRemovalReport, word: &str) -> Vec<String> {
    let command = Paste::default().line(&["cache", word]);
    match (report.interrupted, report.in_use) {
        (true, _) => vec![format!("to remove the rest: {command}")],
        (false, true) => vec![format!(
            "another run uses the cache, so what it may need was left; when it has ended: {command}"
        )],
        (false, false) => Vec::new(),
    }
}
