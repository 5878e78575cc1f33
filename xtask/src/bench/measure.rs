//! Runs contenders in turn and keeps what each run cost.
//!
//! Rounds begin with another contender each time, so that what a round does to a machine (a cache
//! that fills, a core that another program takes) meets all of them alike. Before a run, what it
//! needs is prepared and everything is written to disk, untimed.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

use super::error::{Error, shown};

/// How long a machine rests between what is prepared and what is timed.
const SETTLE: Duration = Duration::from_millis(100);
/// How much of what a failed program wrote is shown, from its end.
const SAID_BYTES: usize = 4096;

/// Prepares one run in a new, empty directory.
type Prepare<'a> = dyn Fn(&Path) -> Result<Run, Error> + 'a;

/// Somebody who does the work.
pub(crate) struct Contender<'a> {
    /// What it is called in the table.
    pub(crate) name: &'static str,
    /// Prepares one run in a new, empty directory.
    pub(crate) prepare: Box<Prepare<'a>>,
}

/// What is timed, and what must be there after it.
pub(crate) struct Run {
    /// The programs, one after the other.
    pub(crate) commands: Vec<Command>,
    /// Where the files of the corpus are afterwards, and how many.
    pub(crate) result: Option<Placed>,
}

/// Files of the corpus in a place.
pub(crate) struct Placed {
    /// The directory they are below.
    pub(crate) place: PathBuf,
    /// Part of the names of files of the corpus and of no others.
    pub(crate) named: &'static str,
    /// How many there are.
    pub(crate) files: usize,
}

/// What one run cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// From the start of its first program to the end of its last.
    pub(crate) elapsed: Duration,
    /// What its processes computed, and the system for them: the part of the time that does not
    /// depend on who else uses the machine.
    pub(crate) computed: Duration,
    /// The most memory that one process of it had, in bytes.
    pub(crate) peak_bytes: u64,
}

/// The samples of a contender, a round each.
pub(crate) struct Samples {
    pub(crate) name: &'static str,
    pub(crate) rounds: Vec<Sample>,
}

/// A program in `directory` with this search path and nothing else in its environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where a measurement starts a program"
)]
pub(crate) fn command(program: &Path, directory: &Path, path: &OsStr) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(directory)
        .env_clear()
        .env("PATH", path)
        .stdin(Stdio::null());
    command
}

/// Runs `command` to its end, untimed; what it writes is shown if it fails.
pub(crate) fn run_quietly(command: &mut Command) -> Result<(), Error> {
    let output = command.output();
    let output = output.map_err(|source| Error::start(command, source))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Failed {
            command: shown(command),
            status: output.status,
            said: end_of(&[output.stdout, output.stderr].concat()),
        }),
    }
}

/// Runs every contender `rounds` times, and once before that, in directories below `place`.
pub(crate) fn take_turns(
    contenders: &[Contender<'_>],
    rounds: usize,
    place: &Path,
) -> Result<Vec<Samples>, Error> {
    let empty = |contender: &Contender<'_>| Samples {
        name: contender.name,
        rounds: Vec::with_capacity(rounds),
    };
    let mut samples: Vec<Samples> = contenders.iter().map(empty).collect();
    for round in 0..=rounds {
        for index in turns(contenders.len(), round) {
            let directory = place.join(format!("round-{round}-{index}"));
            let sample = sample(&contenders[index], &directory)?;
            if round > 0 {
                samples[index].rounds.push(sample);
            }
        }
    }
    Ok(samples)
}

/// The order of `count` contenders in a round.
fn turns(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (turn + round) % count)
}

/// Prepares a run in `directory`, times it, and looks at what it left.
fn sample(contender: &Contender<'_>, directory: &Path) -> Result<Sample, Error> {
    let creating = |source| Error::files("creating", directory, source);
    std::fs::create_dir(directory).map_err(creating)?;
    let mut run = (contender.prepare)(directory)?;
    let log = directory.with_extension("log");
    let said = File::create_new(&log).map_err(|source| Error::files("creating", &log, source))?;
    for command in &mut run.commands {
        let copy = || said.try_clone();
        let copies = copy().and_then(|out| Ok((out, copy()?)));
        let (out, err) = copies.map_err(|source| Error::files("writing", &log, source))?;
        command.stdout(out).stderr(err);
    }
    settle();
    let sample = timed(&mut run.commands, &log)?;
    match &run.result {
        Some(placed) => placed.check(contender.name).map(|()| sample),
        None => Ok(sample),
    }
}

/// Writes what is still to be written, so that no run pays for the one before.
fn settle() {
    #[cfg(unix)]
    rustix::fs::sync();
    std::thread::sleep(SETTLE);
}

fn timed(commands: &mut [Command], log: &Path) -> Result<Sample, Error> {
    let mut peak_bytes = 0;
    let mut computed = Duration::ZERO;
    let start = Instant::now();
    for command in commands {
        let used = command.spawn().and_then(Wait4::wait4);
        let used = used.map_err(|source| Error::start(command, source))?;
        if !used.status.success() {
            return Err(Error::Failed {
                command: shown(command),
                status: used.status,
                said: end_of(&std::fs::read(log).unwrap_or_default()),
            });
        }
        peak_bytes = peak_bytes.max(used.rusage.maxrss);
        computed += used.rusage.utime + used.rusage.stime;
    }
    Ok(Sample {
        elapsed: start.elapsed(),
        computed,
        peak_bytes,
    })
}

/// The last of what a program wrote.
fn end_of(said: &[u8]) -> String {
    let from = said.len().saturating_sub(SAID_BYTES);
    String::from_utf8_lossy(&said[from..]).trim_end().to_owned()
}

impl Placed {
    /// Are the files there? A run that ends well without them would be the fastest of all.
    pub(crate) fn check(&self, contender: &str) -> Result<(), Error> {
        let is_counted = |entry: &walkdir::DirEntry| {
            entry.file_type().is_file() && entry.file_name().to_string_lossy().contains(self.named)
        };
        let entries = walkdir::WalkDir::new(&self.place).into_iter().flatten();
        let found = entries.filter(is_counted).count();
        match found == self.files {
            true => Ok(()),
            false => Err(Error::OtherResult {
                contender: contender.to_owned(),
                place: self.place.clone(),
                found,
                expected: self.files,
            }),
        }
    }
}

impl Samples {
    /// The middle time.
    pub(crate) fn median_ms(&self) -> f64 {
        median(self.rounds.iter().map(Sample::ms).collect())
    }

    /// The shortest time.
    pub(crate) fn least_ms(&self) -> f64 {
        self.rounds.iter().map(Sample::ms).fold(f64::MAX, f64::min)
    }

    /// The middle of the time that was computed.
    pub(crate) fn computed_ms(&self) -> f64 {
        median(self.rounds.iter().map(|it| ms(it.computed)).collect())
    }

    /// The most memory, in MiB.
    pub(crate) fn peak_mib(&self) -> f64 {
        let peaks = self.rounds.iter().map(|sample| sample.peak_bytes);
        peaks.max().unwrap_or_default() as f64 / f64::from(1 << 20)
    }

    /// How many times as long as `other` this took: the middle of the ratios of each round.
    pub(crate) fn ratio_to(&self, other: &Self) -> f64 {
        let pairs = self.rounds.iter().zip(&other.rounds);
        median(
            pairs
                .map(|(ours, theirs)| ours.ms() / theirs.ms())
                .collect(),
        )
    }
}

impl Sample {
    fn ms(&self) -> f64 {
        ms(self.elapsed)
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The middle of `values`, or the mean of the two in the middle; of none, not a number.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => at(middle),
        _ => (at(middle.wrapping_sub(1)) + at(middle)) / 2.0,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Samples of these times, in ms, with a peak of `peak_mib` each.
    pub(crate) fn samples(name: &'static str, times: &[u64], peak_mib: u64) -> Samples {
        let sample = |&ms: &u64| Sample {
            elapsed: Duration::from_millis(ms),
            computed: Duration::from_millis(ms / 2),
            peak_bytes: peak_mib << 20,
        };
        Samples {
            name,
            rounds: times.iter().map(sample).collect(),
        }
    }

    #[test]
    fn every_contender_begins_a_round_in_its_turn() {
        let order = |round| turns(3, round).collect::<Vec<_>>();
        assert_eq!(order(0), [0, 1, 2]);
        assert_eq!(order(1), [1, 2, 0]);
        assert_eq!(order(2), [2, 0, 1]);
        assert_eq!(order(3), order(0));
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![9.0, 1.0, 2.0, 4.0]), 3.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn a_ratio_is_taken_inside_each_round() {
        let ours = samples("ours", &[10, 40, 30], 1);
        let theirs = samples("theirs", &[20, 20, 20], 1);
        assert_eq!(ours.ratio_to(&theirs), 1.5);
        let drift = samples("theirs", &[5, 20, 15], 1);
        assert_eq!(ours.ratio_to(&drift), 2.0);
        assert_eq!((ours.median_ms(), ours.least_ms()), (30.0, 10.0));
    }

    fn check_placed(files: usize) -> Result<(), Error> {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        for name in ["page-1.md", "page-2.md", "vibe.toml"] {
            std::fs::write(inner.join(name), "text").unwrap();
        }
        let placed = Placed {
            place: directory.path().to_owned(),
            named: "page-",
            files,
        };
        placed.check("tool")
    }

    #[test]
    fn a_run_that_leaves_other_files_is_no_measurement() {
        assert!(check_placed(2).is_ok());
        for other in [1, 3] {
            let error = check_placed(other).unwrap_err().to_string();
            assert!(error.starts_with(&format!("tool left 2 of {other} files in ")));
        }
    }

    /// A contender that runs `arguments` of the shell in its own directory.
    #[cfg(unix)]
    fn shell(script: &'static str) -> Contender<'static> {
        let prepare = move |directory: &Path| {
            let mut command = command(Path::new("/bin/sh"), directory, "/usr/bin:/bin".as_ref());
            command.args(["-c", script]);
            Ok(Run {
                commands: vec![command],
                result: None,
            })
        };
        Contender {
            name: "shell",
            prepare: Box::new(prepare),
        }
    }

    #[cfg(unix)]
    #[test]
    fn each_run_has_a_new_directory_and_the_first_round_does_not_count() {
        let place = tempfile::tempdir().unwrap();
        let contenders = [shell("test -z \"$(ls)\" && touch ran"), shell(":")];
        let samples = take_turns(&contenders, 2, place.path()).unwrap();
        assert_eq!(samples[0].rounds.len(), 2);
        assert!(samples[0].rounds.iter().all(|it| it.peak_bytes > 0));
        for directory in ["round-0-0", "round-1-0", "round-2-0"] {
            assert!(place.path().join(directory).join("ran").exists());
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_a_failed_program_said_is_shown() {
        let place = tempfile::tempdir().unwrap();
        let failing = [shell("echo to stdout; echo to stderr >&2; exit 3")];
        let error = take_turns(&failing, 1, place.path()).err().unwrap();
        let text = error.to_string();
        assert!(text.contains("exit status: 3"), "{text}");
        assert!(text.ends_with("\nto stdout\nto stderr"), "{text}");
    }
}
