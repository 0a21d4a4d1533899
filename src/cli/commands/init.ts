/** `millrace init`: creates a project. Existing files are kept. */
import type { Command } from 'commander'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { CommandContext } from '../context.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { schemaFile } from '../paths.ts'
import { paint } from '../terminal/output.ts'
import { examples } from './options.ts'

export function addInitCommand(context: CommandContext, program: Command): void {
  program
    .command('init')
    .summary('Create a project with a first agent')
    .description(
      'Create an agent, a config file and a JSON Schema for your editor.\nFiles that already exist are kept as they are.',
    )
    .argument('[dir]', 'Project folder', '.')
    .addHelpText('after', examples('millrace init', 'millrace init my-project'))
    .action((dir: string) => createProject(context, dir))
}

async function createProject(context: CommandContext, dir: string): Promise<void> {
  const agents = join(dir, 'agents')
  try {
    mkdirSync(context.path(agents), { recursive: true })
  } catch (error) {
    throw new MillraceError('usage', `Cannot create the folder ${agents}: ${messageOf(error)}`)
  }
  const config = readdirSync(context.path(agents)).find((name) => /^millrace\.config\.m?[jt]s$/u.test(name))
  write(context, join(agents, 'assistant.yaml'), agentText)
  write(
    context,
    join(agents, config ?? (isModule(context, agents) ? 'millrace.config.ts' : 'millrace.config.mts')),
    configText,
  )
  // After the config, whose names the schema contains.
  const { editorSchema } = await import('../editor-schema.ts')
  if (!write(context, join(agents, schemaFile), await editorSchema(context, agents))) {
    context.stdout.write(`        update it with: millrace schema ${agents} > ${join(agents, schemaFile)}\n`)
  }
  writeIgnore(context, join(dir, '.gitignore'))

  const command = context.env['npm_command'] === 'exec' ? 'npx millrace' : 'millrace'
  const relativeDir = relative(context.path('.'), context.path(dir))
  const lines = [
    ...(relativeDir === ''
      ? []
      : [`cd ${/^[\w./-]+$/u.test(relativeDir) ? relativeDir : JSON.stringify(relativeDir)}`]),
    `${command} run assistant -m "What is 12*7?"`,
    `${command} chat`,
    `${command} serve`,
  ]
  context.stdout.write(`\nNext steps:\n${lines.map((line) => `  ${line}\n`).join('')}`)
}

/** An existing file is not changed; missing lines are printed. */
function writeIgnore(context: CommandContext, path: string): void {
  if (!existsSync(context.path(path))) return void write(context, path, ignoreText)
  const lines = readFileSync(context.path(path), 'utf8')
    .split('\n')
    .map((line) => line.trim().replace(/^\/|\/$/gu, ''))
  const missing = ignored.filter((each) => !lines.includes(each.replace(/\/$/u, '')))
  if (missing.length === 0) return
  context.stdout.write(`${paint(context, 'yellow', 'exists ')} ${path}\n        add to it: ${missing.join(', ')}\n`)
}

/** False if the file exists already; it is kept. */
function write(context: CommandContext, path: string, text: string): boolean {
  try {
    writeFileSync(context.path(path), text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      context.stdout.write(`${paint(context, 'yellow', 'exists ')} ${path}\n`)
      return false
    }
    throw new MillraceError('usage', `Cannot write ${path}: ${messageOf(error)}`)
  }
  context.stdout.write(`${paint(context, 'green', 'created')} ${path}\n`)
  return true
}

/** Whether Node loads a plain .ts file there as a module without a warning. */
function isModule(context: CommandContext, dir: string): boolean {
  for (let at = context.path(dir); ; at = dirname(at)) {
    const file = join(at, 'package.json')
    if (existsSync(context.path(file))) {
      try {
        return (JSON.parse(readFileSync(context.path(file), 'utf8')) as { type?: unknown }).type === 'module'
      } catch {
        // A broken package.json is reported by npm and Node.
        return false
      }
    }
    if (at === dirname(at)) return false
  }
}

/** The files of `millrace init`. The agent runs without a key; the config works before anything is installed. */
const agentText = `# yaml-language-server: $schema=./${schemaFile}
#
# An agent is one YAML file. This one runs without an API key. The first line gives your editor completion and checks.
#
#   millrace run assistant -m "What is 12*7?"     print one answer
#   millrace chat assistant                       chat on the terminal
#   millrace serve                                serve it over HTTP; changes to this file are picked up at once
#   millrace check                                check it for errors
#   millrace test --add <run>                     make a test case of a recorded run; millrace test runs them all

metadata:
  name: "Assistant"
  version: "1.0.0"
  description: "Answers in words, calculates, and knows the time"

# Steps run from top to bottom. The step with \`stream: true\` is the answer: clients receive it token by token.
workflow:
  - id: answer
    type: llm # calls a model, and runs the tools it asks for
    config:
      # The built-in offline model. With an API key in the environment or in .env, use "gemini-2.5-flash", "openai:gpt-5" or
      # "anthropic:claude-sonnet-4-5". For a local server, pass --endpoint ollama=http://localhost:11434/v1 and use "ollama:llama3.2".
      model: "demo:assistant"
      stream: true
      system: "You are a helpful and concise assistant."
      # \`$input\` is the client's request; \`$input.messages\` is the conversation so far.
      messages: "$input.messages"
      # Tools that the model may call. Register your own in the config file beside this one.
      tools:
        - name: calculator
        - name: getCurrentTime
      maxSteps: 5 # maximum number of model calls for one answer
      # onFinish: logAnswer # uncomment to call this callback of the config file after each answer
`

const configText = `// Adds tools, callbacks, step types, models and prices that agents can use by name. Node runs this file directly.
// \`npm install millrace\` adds the types; the file works without it.
import type { Config } from 'millrace'

export default {
  callbacks: {
    // Use it in an agent: \`onFinish: logAnswer\`.
    logAnswer: ({ text, totalUsage }) => console.error(\`answered \${text.length} characters, \${totalUsage.totalTokens} tokens\`),
  },
  tools: {
    // A custom tool. To enable it, run \`npm install millrace zod\`, add \`import { z } from 'zod'\` above, and uncomment it.
    // Use it in an agent: \`tools: [orderStatus]\`.
    //
    // orderStatus: {
    //   description: 'Look up the status of an order',
    //   parameters: z.object({ orderId: z.string() }),
    //   execute: async ({ orderId }, { signal }) => (await fetch(\`https://shop.example/orders/\${orderId}\`, { signal })).json(),
    // },
  },
} satisfies Config
`

/** Lines that `.gitignore` should have. */
const ignored = ['node_modules/', '.env', '.millrace/']

const ignoreText = `node_modules/

# API keys.
.env

# The log of all runs, including what users wrote.
.millrace/

# Recordings of tests that wait for somebody, and those that were replaced last.
tests/recordings/*/new/
tests/recordings/*/old/
`
