//! The one writer: group commit.
//!
//! Batches that wait while the disk flushes are committed together: each in its own savepoint, all in one transaction, one
//! flush for all.
//!
//! Invariants:
//! - A batch is answered only after the transaction that holds it is durable, or is known not to be.
//! - A conflict takes back its own batch and no other. A batch that finds no space does not fail its neighbours.
//! - Whatever fails, the next group starts on a sound connection or says why there is none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ports::store::{Batch, Error, Key, Write};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::Options;
use super::connection::{IfMissing, Opened, open_writer, wait_while_busy};
use super::fault::{Fault, leaves_connection_whole};
use super::rows;
use crate::OpenError;

/// A group is closed when it has this many batches or bytes, so that the first caller in it does not wait for ever.
const GROUP_BATCHES: usize = 256;
const GROUP_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub struct Job {
    pub batch: Batch,
    pub answer: oneshot::Sender<Result<(), Error>>,
}

#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    options: Options,
    /// `None` after a failure that may have broken it.
    opened: Option<Opened>,
}

/// What became of one batch of a committed group.
type Outcome = Result<(), Key>;

/// Why a group was not committed.
enum Stop {
    /// One batch could not be applied; nothing was committed.
    Applying(Fault),
    /// It could not begin or could not be committed.
    Whole(Fault),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    Apply,
    Commit,
}

impl Writer {
    pub fn open(path: &Path, options: &Options) -> Result<Self, OpenError> {
        let opened = open_writer(path, options, IfMissing::Create)?;
        Ok(Self { path: path.to_owned(), options: options.clone(), opened: Some(opened) })
    }

    /// Until the last sender is gone and the last job is answered.
    pub fn run(mut self, mut waiting: mpsc::Receiver<Job>) {
        while let Some(first) = waiting.blocking_recv() {
            let group = gather(first, &mut waiting);
            self.commit_group(group);
        }
    }

    fn commit_group(&mut self, group: Vec<Job>) {
        let batches: Vec<&Batch> = group.iter().map(|job| &job.batch).collect();
        match self.attempt(&batches) {
            Ok(outcomes) => group.into_iter().zip(outcomes).for_each(|(job, outcome)| answer(job, Ok(outcome))),
            // Nothing was committed, so each may be tried again by itself: only the one at fault is to fail.
            Err(Stop::Applying(_)) if group.len() > 1 => {
                group.into_iter().for_each(|job| self.commit_group(vec![job]));
            }
            Err(Stop::Applying(fault) | Stop::Whole(fault)) => {
                group.into_iter().for_each(|job| answer(job, Err(fault.clone())));
            }
        }
    }

    fn attempt(&mut self, batches: &[&Batch]) -> Result<Vec<Outcome>, Stop> {
        let opened = self.sound_connection().map_err(Stop::Whole)?;
        let connection = &opened.connection;
        let (phase, error) = match transact(connection, self.options.busy_timeout, batches) {
            Ok(outcomes) => {
                self.opened = Some(opened);
                return Ok(outcomes);
            }
            Err(failed) => failed,
        };
        tracing::warn!(%error, ?phase, batches = batches.len(), "a commit failed");
        let over = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        if over && leaves_connection_whole(&error) {
            self.opened = Some(opened);
        }
        Err(if phase == Phase::Apply { Stop::Applying(error.into()) } else { Stop::Whole(error.into()) })
    }

    /// The connection, taken out of `self`; opened again where it was given up or its file is another one now.
    fn sound_connection(&mut self) -> Result<Opened, Fault> {
        // A connection whose file was moved away is closed; SQLite then leaves alone the WAL that is at its path by now.
        if let Some(opened) = self.opened.take()
            && opened.is_on(&self.path).unwrap_or(false)
        {
            return Ok(opened);
        }
        let opened = open_writer(&self.path, &self.options, IfMissing::Fail)?;
        tracing::info!(path = %self.path.display(), "the database was opened again");
        Ok(opened)
    }
}

fn gather(first: Job, waiting: &mut mpsc::Receiver<Job>) -> Vec<Job> {
    let mut bytes = size(&first.batch);
    let mut group = vec![first];
    while group.len() < GROUP_BATCHES && bytes < GROUP_BYTES {
        let Ok(job) = waiting.try_recv() else { break };
        bytes += size(&job.batch);
        group.push(job);
    }
    group
}

fn size(batch: &Batch) -> usize {
    let value = |write: &Write| match write {
        Write::Put { value, .. } => value.len(),
        Write::Delete { .. } => 0,
    };
    batch.writes.iter().map(value).sum()
}

fn transact(
    connection: &Connection,
    busy_timeout: Duration,
    batches: &[&Batch],
) -> Result<Vec<Outcome>, (Phase, rusqlite::Error)> {
    wait_while_busy(busy_timeout, || run(connection, "BEGIN IMMEDIATE")).map_err(|error| (Phase::Begin, error))?;
    let (outcomes, end) = match batches {
        // Alone in its group it needs no savepoint, for which every page it changes would be copied.
        [batch] => rows::apply(connection, batch).map(|outcome| {
            let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
            (vec![outcome], end)
        }),
        _ => apply_all(connection, batches).map(|outcomes| (outcomes, "COMMIT")),
    }
    .map_err(|error| (Phase::Apply, error))?;
    run(connection, end).map_err(|error| (Phase::Commit, error))?;
    Ok(outcomes)
}

/// Parsed once for all: with cold caches, that is as long as one of the writes.
fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn apply_all(connection: &Connection, batches: &[&Batch]) -> rusqlite::Result<Vec<Outcome>> {
    let mut outcomes = Vec::with_capacity(batches.len());
    for batch in batches {
        run(connection, "SAVEPOINT batch")?;
        let outcome = rows::apply(connection, batch)?;
        if outcome.is_err() {
            run(connection, "ROLLBACK TO batch")?;
        }
        run(connection, "RELEASE batch")?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn answer(job: Job, result: Result<Outcome, Fault>) {
    let result = match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(key)) => Err(Error::Conflict(key)),
        Err(fault) => Err(fault.into()),
    };
    // A caller that no longer waits has no use for the answer.
    let _ = job.answer.send(result);
}
