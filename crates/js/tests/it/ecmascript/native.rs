//! The same engine, compiled for this machine: what the guest's behaviour is held against. `scripts/ecmascript.sh` builds it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::desk::{Case, Library, Verdict, Wanted};

const SECONDS: u64 = 60;

pub struct Native {
    program: PathBuf,
    folder: tempfile::TempDir,
    library: Library,
}

impl Native {
    /// `None` where nobody built one.
    pub fn find(library: Library) -> Option<Self> {
        let program = PathBuf::from(env::var_os("TOKAMAK_QJS")?);
        Some(Self { program, folder: tempfile::tempdir().unwrap(), library })
    }

    /// Harness and case as the scripts they are.
    pub fn script(&self, at: usize, case: &Case) -> Verdict {
        let mut command = Command::new(&self.program);
        for name in &case.harness {
            let file = self.folder.path().join(name.replace('/', "_"));
            if !file.exists() {
                // Two threads may both write it, each all of it: the name is given to a whole file.
                let new = self.folder.path().join(format!("{at}.harness"));
                fs::write(&new, (self.library)(name)).unwrap();
                fs::rename(&new, &file).unwrap();
            }
            command.arg("-I").arg(file);
        }
        let file = self.folder.path().join(format!("{at}.js"));
        fs::write(&file, &case.source).unwrap();
        let verdict = self.judge(command.arg("--script").arg(&file), &case.wanted);
        fs::remove_file(file).unwrap();
        verdict
    }

    /// A file where it lies, with the modules beside it.
    pub fn file(&self, path: &Path, wanted: &Wanted) -> Verdict {
        self.judge(Command::new(&self.program).arg(path), wanted)
    }

    fn judge(&self, command: &mut Command, wanted: &Wanted) -> Verdict {
        if *wanted == Wanted::Interrupted {
            // Nobody interrupts a program that is run by hand.
            return Ok(());
        }
        let said = self.folder.path().join(format!("{:?}.said", std::thread::current().id()));
        let output = fs::File::create(&said).unwrap();
        let errors = output.try_clone().unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(SECONDS);
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                child.kill().unwrap();
                child.wait().unwrap();
                return Err(format!("it took longer than {SECONDS} s"));
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        let text = String::from_utf8_lossy(&fs::read(&said).unwrap()).into_owned();
        match wanted {
            Wanted::Completes if status.success() => Ok(()),
            // A rejection that nobody handles is an error to it, and may be what a test is about.
            Wanted::Says(word) if text.contains(word) && !text.contains("Test262 failed") => Ok(()),
            Wanted::Throws(name) if !status.success() && text.contains(name.as_str()) => Ok(()),
            _ => Err(format!("{status}: {}", text.lines().next().unwrap_or_default())),
        }
    }
}
