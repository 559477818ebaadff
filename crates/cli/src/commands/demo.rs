//! `tokamak demo`: walks through a session on the demo API, and prints each call with its answer.
//! Invariant: the answers are the texts that a host gets, except that long results are cut earlier to fit a screen.

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
    let service = wiring::app(&config, &stop).await?.app.service().clone();
    let tour = Tour { service: &service, output };
    let walked = tour.walk().await;
    stop.cancel();
    walked
}

struct Tour<'a> {
    service: &'a Arc<Service>,
    output: &'a Output,
}

impl Tour<'_> {
    async fn walk(&self) -> Result<(), Failure> {
        self.say("A host opens a session: one intent for the whole task, and the entities it needs.");
        self.open(&["Ticket", "Project"]).await?;
        self.say("The table taught two entities. A program is planned first: nothing is called yet.");
        let busy = "busy = Ticket{project=\"OPS\", state=\"open\"}.limit(5)\nbusy[number, title, votes], Project(\"OPS\")[name, lead]";
        self.plan(busy).await?;
        self.say("The same program, run. Both reads go side by side.");
        self.run(busy).await?;
        self.say("The task needs more: the same intent finds the same session, and only the new rows are taught.");
        self.open(&["Ticket", "Comment", "Person"]).await?;
        self.say("Relations: the comments of one ticket, and who wrote the ticket.");
        self.run("ticket = Ticket(project=\"OPS\", number=42)\nticket.comments.limit(3)[author, text], ticket.reporter[name, team]").await?;
        self.say("A mistake is answered with the place and what to write instead.");
        self.plan("Ticket{statuz=\"open\"}").await?;
        self.say("A long list is cut for the model; all of it stays readable.");
        let number = self.run("Ticket{project=\"API\"}").await?;
        self.artifact(number).await?;
        self.say(
            "That is all. `tokamak serve` does the same for a real host; `tokamak mcp-config claude` connects one.",
        );
        Ok(())
    }

    async fn open(&self, entities: &[&str]) -> Result<(), Failure> {
        let seeds = entities.iter().map(|e| SeedRequest::all("demo", e)).collect();
        let shown: Vec<Value> = entities.iter().map(|e| json!({"api": "demo", "entity": e})).collect();
        self.call("plasm_context", &json!({"intent": "tour of the demo", "seeds": shown}));
        let request = OpenRequest::new("tour of the demo", seeds);
        let opened = self.service.open(&caller(), &request).await?;
        self.answer(&text::opened(&opened));
        Ok(())
    }

    async fn plan(&self, program: &str) -> Result<(), Failure> {
        self.call("plasm", &json!({"logical_session_ref": "s0", "program": program}));
        let request = PlanRequest { session: "s0".to_owned(), program: program.to_owned() };
        match self.service.plan(&caller(), &request).await {
            Ok(planned) => self.answer(&text::planned(&planned, program)),
            Err(error @ session::Error::Program { .. }) => self.answer(&text::session_error(&error)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn run(&self, program: &str) -> Result<u64, Failure> {
        self.call("plasm_run", &json!({"logical_session_ref": "s0", "program": program}));
        let request =
            RunRequest { session: "s0".to_owned(), program: Some(program.to_owned()), ..RunRequest::default() };
        let answer = self.service.run(&caller(), &request).await?;
        let ran = answer.finished().ok_or_else(|| Failure::Found("the run takes too long".to_owned()))?;
        let artifact = ResourceUri::run(ran.slot, ran.number);
        self.answer(&text::run_result(&ran.outcome, &artifact, 1_200).text);
        Ok(ran.number)
    }

    async fn artifact(&self, number: u64) -> Result<(), Failure> {
        let uri = ResourceUri::run(base::Slot(0), number);
        self.call("read_artifact", &json!({"uri": uri, "offset": 40, "limit": 2, "fields": ["number", "title"]}));
        let artifact = self.service.artifact(&caller(), &uri).await?;
        let columns = ["number".to_owned(), "title".to_owned()];
        for returned in &artifact.returns {
            let rows: Vec<_> = returned.rows.iter().skip(40).take(2).cloned().collect();
            self.answer(&text::rows_table(&columns, &rows, |_, _| false));
        }
        Ok(())
    }

    fn say(&self, what: &str) {
        if !self.output.json {
            self.output.line(&format!("\n{}", self.output.bold(&format!("· {what}"))));
        }
    }

    fn call(&self, tool: &str, arguments: &Value) {
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

    fn answer(&self, text: &str) {
        if self.output.json {
            self.output.line(&json!({"answer": text}).to_string());
            return;
        }
        let quoted: Vec<String> = text.trim_end().lines().map(|line| format!("  │ {line}")).collect();
        self.output.line(&quoted.join("\n"));
    }
}
