//! Runs conformance files in QuickJS-NG compiled for this machine, for comparison with the guest.
//! `scripts/ecmascript.sh` builds it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::case_runner::{Case, Expectation, HarnessFiles, Verdict};

const MAX_SECONDS: u64 = 60;

pub struct Native {
    program: PathBuf,
    /// The folder of the files that the program runs.
    folder: tempfile::TempDir,
    harness_files: HarnessFiles,
}

impl Native {
    /// Finds the native build. Returns `None` if it does not exist.
    pub fn find(harness_files: HarnessFiles) -> Option<Self> {
        let program = PathBuf::from(env::var_os("TOKAMAK_QJS")?);
        Some(Self { program, folder: tempfile::tempdir().unwrap(), harness_files })
    }

    /// Runs harness and case as scripts. `index` is unique among the cases that run at the same time.
    pub fn run_script(&self, index: usize, case: &Case) -> Verdict {
        let mut command = Command::new(&self.program);
        for name in &case.harness {
            let file = self.folder.path().join(name.replace('/', "_"));
            if !file.exists() {
                // Several threads may write the file. It gets its name only when it is complete.
                let new = self.folder.path().join(format!("{index}.harness"));
                fs::write(&new, (self.harness_files)(name)).unwrap();
                fs::rename(&new, &file).unwrap();
            }
            command.arg("-I").arg(file);
        }
        let file = self.folder.path().join(format!("{index}.js"));
        fs::write(&file, &case.source).unwrap();
        let verdict = self.judge(command.arg("--script").arg(&file), &case.expectation);
        fs::remove_file(file).unwrap();
        verdict
    }

    /// Runs a file in its own folder, so that it finds its modules.
    pub fn run_file(&self, path: &Path, expectation: &Expectation) -> Verdict {
        self.judge(Command::new(&self.program).arg(path), expectation)
    }

    fn judge(&self, command: &mut Command, expectation: &Expectation) -> Verdict {
        if *expectation == Expectation::Interrupted {
            // The native program has no deadline.
            return Ok(());
        }
        let output_file = self.folder.path().join(format!("{:?}.output", std::thread::current().id()));
        let output = fs::File::create(&output_file).unwrap();
        let errors = output.try_clone().unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(MAX_SECONDS);
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                return Err(format!("it took longer than {MAX_SECONDS} s"));
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        let text = String::from_utf8_lossy(&fs::read(&output_file).unwrap()).into_owned();
        match expectation {
            Expectation::Completes if status.success() => Ok(()),
            // The exit status is ignored, because the native program treats an unhandled rejection as an error and some
            // tests cause one on purpose.
            Expectation::Prints(word) if text.contains(word) && !text.contains("Test262 failed") => Ok(()),
            Expectation::Throws(name) if !status.success() && text.contains(name.as_str()) => Ok(()),
            _ => Err(format!("{status}: {}", text.lines().next().unwrap_or_default())),
        }
    }
}
