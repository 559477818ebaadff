//! `tokamak demo`: runs an example session on the demo API, and prints each call with its answer.
//! Invariant: the answers are the texts that an MCP host gets, but long results are cut to fit a screen.

use std::sync::Arc;

use access::Caller;
use serde_json::{Value, json};
use server::text;
use session::{OpenRequest, PlanRequest, ResourceUri, RunRequest, SeedRequest, Service};
use tokio_util::sync::CancellationToken;

use crate::args::Settings;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::{log, wiring};

pub fn caller() -> Caller {
    Caller::local()
}

pub async fn run(output: &Output) -> Result<(), Failure> {
    log::init("error");
    let folder = tempfile::tempdir().map_err(Failure::Scratch)?;
    let settings = Settings { data: Some(folder.path().to_owned()), ..Settings::default() };
    let config = Config::read(None, &settings)?;
    let stop = CancellationToken::new();
    let service = wiring::build_app(&config, None, &stop).await?.app.service().clone();
    let tour = Tour { service: &service, output };
    let walked = tour.walk().await;
    stop.cancel();
    walked
}

/// The example session: the service that answers the calls, and the output for calls and answers.
struct Tour<'a> {
    service: &'a Arc<Service>,
    output: &'a Output,
}

impl Tour<'_> {
    async fn walk(&self) -> Result<(), Failure> {
        self.say(
            "A host opens a session with one intent for the whole task, and with the entities that the task needs.",
        );
        self.open(&["Ticket", "Project"]).await?;
        self.say("The table taught two entities. The tool `plasm` plans a program and calls no API.");
        let busy = "busy = Ticket{project=\"OPS\", state=\"open\"}.limit(5)\nbusy[number, title, votes], Project(\"OPS\")[name, lead]";
        self.plan(busy).await?;
        self.say("The tool `plasm_run` runs the same program. Both reads are sent at the same time.");
        self.run(busy).await?;
        self.say(
            "The task needs more entities. The same intent finds the same session, and the table has only the new rows.",
        );
        self.open(&["Ticket", "Comment", "Person"]).await?;
        self.say(
            "A program follows relations: it reads the comments of one ticket, and the person who reported the ticket.",
        );
        self.run("ticket = Ticket(project=\"OPS\", number=42)\nticket.comments.limit(3)[author, text], ticket.reporter[name, team]").await?;
        self.say("The answer to a mistake has the position of the mistake and the correction.");
        self.plan("Ticket{statuz=\"open\"}").await?;
        self.say("The answer of a run has the first rows of a long list. The model can read the other rows from the artifact.");
        let number = self.run("Ticket{project=\"API\"}").await?;
        self.artifact(number).await?;
        self.say(
            "The demo ends here. `tokamak serve` offers these tools to a host, and `tokamak mcp-config claude` prints how to connect one.",
        );
        Ok(())
    }

    async fn open(&self, entities: &[&str]) -> Result<(), Failure> {
        let seeds = entities.iter().map(|e| SeedRequest::all("demo", e)).collect();
        let shown: Vec<Value> = entities.iter().map(|e| json!({"api": "demo", "entity": e})).collect();
        self.print_call("plasm_context", &json!({"intent": "tour of the demo", "seeds": shown}));
        let request = OpenRequest::new("tour of the demo", seeds);
        let opened = self.service.open(&caller(), &request).await?;
        self.print_answer(&text::opened(&opened));
        Ok(())
    }

    async fn plan(&self, program: &str) -> Result<(), Failure> {
        self.print_call("plasm", &json!({"logical_session_ref": "s0", "program": program}));
        let request = PlanRequest { session: "s0".to_owned(), program: program.to_owned() };
        match self.service.plan(&caller(), &request).await {
            Ok(planned) => self.print_answer(&text::planned(&planned, program)),
            Err(error @ session::Error::Program { .. }) => self.print_answer(&text::session_error(&error)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn run(&self, program: &str) -> Result<u64, Failure> {
        self.print_call("plasm_run", &json!({"logical_session_ref": "s0", "program": program}));
        let request =
            RunRequest { session: "s0".to_owned(), program: Some(program.to_owned()), ..RunRequest::default() };
        let answer = self.service.run(&caller(), &request).await?;
        let ran = answer
            .finished()
            .ok_or_else(|| Failure::Found("the demo run did not end in time; run `tokamak demo` again".to_owned()))?;
        let artifact = ResourceUri::run(ran.slot, ran.number);
        self.print_answer(&text::run_result(&ran.outcome, &artifact, 1_200).text);
        Ok(ran.number)
    }

    async fn artifact(&self, number: u64) -> Result<(), Failure> {
        let uri = ResourceUri::run(base::Slot(0), number);
        self.print_call("read_artifact", &json!({"uri": uri, "offset": 40, "limit": 2, "fields": ["number", "title"]}));
        let artifact = self.service.artifact(&caller(), &uri).await?;
        let columns = ["number".to_owned(), "title".to_owned()];
        for returned in &artifact.returns {
            let rows: Vec<_> = returned.rows.iter().skip(40).take(2).cloned().collect();
            self.print_answer(&text::rows_table(&columns, &rows, |_, _| false));
        }
        Ok(())
    }

    /// Prints an explanation of the next call. With `--json` nothing is printed.
    fn say(&self, explanation: &str) {
        if !self.output.json {
            self.output.line(&format!("\n{}", self.output.bold(&format!("· {explanation}"))));
        }
    }

    /// Prints the name of a tool and the arguments of the call.
    fn print_call(&self, tool: &str, arguments: &Value) {
        if self.output.json {
            self.output.line(&json!({"tool": tool, "arguments": arguments}).to_string());
            return;
        }
        self.output.line(&format!("\n▶ {tool}"));
        for (name, value) in arguments.as_object().into_iter().flatten() {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.output.line(&format!("    {name}: {}", shown.replace('\n', "\n      ")));
        }
    }

    /// Prints the answer to the last call.
    fn print_answer(&self, text: &str) {
        if self.output.json {
            self.output.line(&json!({"answer": text}).to_string());
            return;
        }
        let quoted: Vec<String> = text.trim_end().lines().map(|line| format!("  │ {line}")).collect();
        self.output.line(&quoted.join("\n"));
    }
}
