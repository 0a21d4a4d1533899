/**
 * The storage of the tables over the log. They have no texts: a row points to its entry in `ticks` (`tick`, and `at` and `length` in bytes), and
 * deltas have no rows of their own: a row of `indexed_blocks` names the ticks that have them. `run` is `runs.number`.
 *
 * Every lookup for an entry takes the same time in a run of any length. An index of open or counted items has only those: in a run with thousands
 * of calls, ended ones are not scanned.
 */

/** Entries that the summary of an agent counts, and that a reset discards. */
export const summed = `type IN ('text-end', 'reasoning-end', 'tool-call', 'tool-result', 'error')`

export const baseTables = `
  CREATE TABLE indexed_runs (
    run INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
  );
  CREATE TABLE indexed_threads (
    id TEXT PRIMARY KEY,
    last_run INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX indexed_threads_by_time ON indexed_threads (updated_at);
  CREATE TABLE indexed_agents (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    step TEXT NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT,
    execution_id TEXT NOT NULL,
    parent_id TEXT,
    status TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    error TEXT
  );
  CREATE INDEX indexed_agents_by_run ON indexed_agents (run, seq);
  CREATE INDEX indexed_agents_by_execution ON indexed_agents (execution_id);
  -- Entries other than deltas. \`counts\` is 1 for what the summary counts, 0 for what it leaves out, -1 for what a reset took back.
  CREATE TABLE indexed_events (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    step INTEGER NOT NULL,
    type TEXT NOT NULL,
    event_id TEXT,
    tool_name TEXT,
    timestamp INTEGER NOT NULL,
    tick INTEGER NOT NULL,
    at INTEGER NOT NULL,
    length INTEGER NOT NULL,
    counts INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
  ) WITHOUT ROWID;
  -- Has all that is asked about calls and their results, but for their contents.
  CREATE INDEX indexed_events_by_type ON indexed_events (type, event_id, agent, timestamp, tool_name);
  CREATE INDEX indexed_events_by_agent ON indexed_events (agent, type, counts);
  CREATE INDEX indexed_events_by_step ON indexed_events (run, step) WHERE counts >= 0 AND ${summed};
  CREATE TABLE indexed_delta_types (
    type TEXT PRIMARY KEY
  ) WITHOUT ROWID;
  INSERT INTO indexed_delta_types VALUES ('text-delta'), ('reasoning-delta'), ('tool-input-delta');
  -- Texts, reasoning and tool inputs that came in deltas: those of the type in the log of this run from this tick on.
  CREATE TABLE indexed_blocks (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    step INTEGER NOT NULL,
    type TEXT NOT NULL,
    event_id TEXT NOT NULL,
    tool_name TEXT,
    log INTEGER NOT NULL,
    tick_seq INTEGER NOT NULL,
    last_seq INTEGER,
    PRIMARY KEY (run, seq)
  ) WITHOUT ROWID;
  CREATE INDEX indexed_blocks_by_type ON indexed_blocks (type, event_id);
  CREATE INDEX indexed_blocks_by_agent ON indexed_blocks (agent, type);
  CREATE INDEX indexed_blocks_open ON indexed_blocks (run, step) WHERE last_seq IS NULL;
  CREATE TABLE indexed_steps (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    path TEXT NOT NULL,
    agent INTEGER NOT NULL,
    step_type TEXT NOT NULL,
    kind TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    answer INTEGER NOT NULL,
    tool_call_id TEXT,
    tool_name TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    duration INTEGER,
    finish_reason TEXT,
    error TEXT,
    superseded INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, seq)
  ) WITHOUT ROWID;
  CREATE INDEX indexed_steps_by_path ON indexed_steps (run, path);
  CREATE INDEX indexed_steps_by_time ON indexed_steps (started_at) WHERE kind = 'model-call';
  CREATE INDEX indexed_steps_that_count ON indexed_steps (run, path) WHERE superseded = 0;
  -- \`waits\` is 1 until the first token, or the end without one.
  CREATE TABLE indexed_model_calls (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    stage TEXT,
    model TEXT,
    prompt_seq INTEGER,
    first_token_at INTEGER,
    waits INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (run, seq)
  ) WITHOUT ROWID;
  CREATE INDEX indexed_model_calls_waiting ON indexed_model_calls (run) WHERE waits = 1;
  CREATE TABLE indexed_tool_calls (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    loop TEXT NOT NULL,
    step INTEGER NOT NULL,
    tool_call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    called_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    outcome TEXT,
    result_seq INTEGER,
    superseded INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, seq)
  ) WITHOUT ROWID;
  CREATE INDEX indexed_tool_calls_open ON indexed_tool_calls (run, tool_call_id, loop)
    WHERE result_seq IS NULL AND superseded = 0;
  CREATE INDEX indexed_tool_calls_by_tool ON indexed_tool_calls (tool_name, called_at);
  CREATE INDEX indexed_tool_calls_by_time ON indexed_tool_calls (called_at);
  CREATE TABLE indexed_requests (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    step INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    tool_call_id TEXT,
    tool_name TEXT,
    asked_at INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT,
    reason TEXT,
    protocol TEXT,
    response_seq INTEGER,
    superseded INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, seq)
  ) WITHOUT ROWID;
  CREATE INDEX indexed_requests_open ON indexed_requests (run, request_id) WHERE outcome IS NULL AND superseded = 0;
  CREATE INDEX indexed_requests_by_step ON indexed_requests (run, step) WHERE superseded = 0;
  CREATE TABLE indexed_usage (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    step INTEGER NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    total_tokens INTEGER,
    reasoning_tokens INTEGER,
    cached_input_tokens INTEGER,
    cache_write_input_tokens INTEGER,
    source TEXT NOT NULL,
    cost REAL,
    timestamp INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
  ) WITHOUT ROWID;
  CREATE INDEX indexed_usage_by_step ON indexed_usage (run, step);
  CREATE INDEX indexed_usage_by_time ON indexed_usage (timestamp);
  -- Hours since 1970. \`kept\` is 1 for those whose facts are kept.
  CREATE TABLE indexed_hours (
    hour INTEGER PRIMARY KEY,
    changes INTEGER NOT NULL,
    kept INTEGER NOT NULL
  );
  CREATE TABLE indexed_hour_facts (
    hour INTEGER NOT NULL,
    tenant TEXT NOT NULL DEFAULT '',
    owner TEXT NOT NULL DEFAULT '',
    agent TEXT NOT NULL,
    names TEXT NOT NULL,
    numbers BLOB NOT NULL,
    PRIMARY KEY (hour, tenant, owner, agent)
  );
  -- What the full-text index has: a text or a piece of a long one. The id is that of the index: see \`index-terms.ts\`.
  CREATE TABLE indexed_texts (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    start INTEGER NOT NULL,
    kind TEXT NOT NULL,
    UNIQUE (run, seq, start)
  );
  -- Texts that are not in it yet.
  CREATE TABLE indexed_later (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    start INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
  ) WITHOUT ROWID;
  CREATE VIRTUAL TABLE search USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'unicode61 remove_diacritics 2'
  );`

export const baseNames = [
  'indexed_runs',
  'indexed_threads',
  'indexed_agents',
  'indexed_events',
  'indexed_delta_types',
  'indexed_blocks',
  'indexed_steps',
  'indexed_model_calls',
  'indexed_tool_calls',
  'indexed_requests',
  'indexed_usage',
  'indexed_hours',
  'indexed_hour_facts',
  'indexed_texts',
  'indexed_later',
  'search',
]
