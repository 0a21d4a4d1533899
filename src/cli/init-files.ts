/** What `millrace init` writes. The agent runs with no key; the config works before anything is installed. */
import { schemaFile } from './editor-schema.ts'

export const agentText = `# yaml-language-server: $schema=./${schemaFile}
#
# An agent is one YAML file. This one runs with no key. The line above tells your editor which keys there are.
#
#   millrace run assistant -m "What is 12*7?"     one answer on the terminal
#   millrace serve                                over HTTP; a change to this file is taken at once
#   millrace check                                what is wrong with it, and where

metadata:
  name: "Assistant"
  version: "1.0.0"
  description: "Answers in words, calculates, and knows the time"

# Steps run from top to bottom. A step with \`stream: true\` is the answer: the client reads it while it is being written.
workflow:
  - id: answer
    type: llm # one conversation with a model, tool calls included
    config:
      # The built-in offline model. With a key in the environment or in .env: "gemini-2.5-flash", "openai:gpt-5",
      # "anthropic:claude-sonnet-4-5"; a server of your own: --endpoint ollama=http://localhost:11434/v1 and "ollama:llama3.2".
      model: "demo:assistant"
      stream: true
      system: "You are a helpful and concise assistant."
      # \`$input\` is what the client sent; \`$input.messages\` is the conversation so far.
      messages: "$input.messages"
      # What the model may call. Tools of your own are registered in the config file beside this one.
      tools:
        - name: calculator
        - name: getCurrentTime
      maxSteps: 5 # model calls for one answer, at most
      # onFinish: logAnswer # a callback of the config file: remove the first "#" to have it called after each answer
`

export const configText = `// What agents may name beside what ships: tools, callbacks, step types, models, prices. Node runs this file as it is.
// Its types come with \`npm install millrace\`; it works without.
import type { Config } from 'millrace'

export default {
  callbacks: {
    // Agents name it: \`onFinish: logAnswer\`.
    logAnswer: ({ text, totalUsage }) => console.error(\`answered \${text.length} characters, \${totalUsage.totalTokens} tokens\`),
  },
  tools: {
    // A tool of your own, once \`npm install millrace zod\` is done and \`import { z } from 'zod'\` stands above.
    // Agents name it: \`tools: [orderStatus]\`.
    //
    // orderStatus: {
    //   description: 'Where an order is',
    //   parameters: z.object({ orderId: z.string() }),
    //   execute: async ({ orderId }, { signal }) => (await fetch(\`https://shop.example/orders/\${orderId}\`, { signal })).json(),
    // },
  },
} satisfies Config
`

/** A line for each thing that belongs in no repository. */
export const ignored = ['node_modules/', '.env', '.millrace/']

export const ignoreText = `node_modules/

# Keys.
.env

# Runs are kept here: what users said, and what they were told.
.millrace/
`
