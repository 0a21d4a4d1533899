/** Finds the values in the environment and the config that must never be recorded, sent or printed. */
import { shortestSecret } from '../fold/secret-forms.ts'
import type { Secret } from '../pipeline/pipeline.ts'
import type { McpHttpServer, McpServer, McpStdioServer } from '../tools/mcp/server.ts'
import type { Config } from './config.ts'
import type { Env } from './registry.ts'
import { credentialsIn, inHeader, isSecretName, isWord, itemsOf, looksRandom } from './secret-values.ts'

/**
 * Values that the config declares secret, environment variables whose name indicates a secret, credentials inside any
 * variable, and credentials of MCP servers and endpoints. Plain words count only if the config declares them.
 */
export function findSecrets(config: Config, env: Env): Secret[] {
  const { models, mcpServers = {}, secrets = {} } = config
  const named = new Set([...(secrets.names ?? []), ...(models?.endpoints ?? []).map(({ apiKeyEnv }) => apiKeyEnv)])
  const found: Secret[] = []
  const add = (from: string, cure: string, values: readonly string[], isSure = false) => {
    for (const value of values.map((each) => each.trim())) {
      if (value.length >= shortestSecret && (isSure || !isWord(value))) found.push({ value, from, cure })
    }
  }
  for (const [name, value = ''] of Object.entries(env)) {
    const from = `the environment variable ${name}`
    const cure = `write $env.${name}, with "${name}" under "env" in the config`
    if (named.has(name)) add(from, cure, [value], true)
    else if (isSecretName(name)) add(from, cure, [value])
    if (/S$/iu.test(name) && (named.has(name) || isSecretName(name))) add(from, cure, itemsOf(value))
    add(from, cure, credentialsIn(value))
  }
  const cure = 'remove it from the text; to use it, set it as an environment variable and write $env.NAME'
  add('secrets.values in the config', cure, secrets.values ?? [], true)
  for (const [name, server] of Object.entries(mcpServers)) {
    add(`mcpServers.${name} in the config`, cure, valuesOf(server))
  }
  for (const { name, baseURL } of models?.endpoints ?? []) {
    add(`the endpoint "${name}" in the config`, cure, credentialsIn(baseURL))
  }
  add(
    'record.store in the config',
    'use the environment variable MILLRACE_STORE',
    credentialsIn(config.record?.store ?? ''),
  )
  add(
    'record.archive in the config',
    'use the environment variable MILLRACE_ARCHIVE',
    credentialsIn(config.record?.archive ?? ''),
  )
  return found
}

/** The distinct secret values. */
export function secretValues(config: Config, env: Env): string[] {
  return [...new Set(findSecrets(config, env).map(({ value }) => value))]
}

/** The secret values in the settings of an MCP server: by name, or because they look random. */
function valuesOf(server: McpServer): string[] {
  const { url = '', headers, args = [], env = {} } = server as Partial<McpHttpServer & McpStdioServer>
  // `env` as a list has names of variables, not values.
  const given = Object.entries({ ...headers, ...(Array.isArray(env) ? {} : env) }) as [string, unknown][]
  const pairs = [...given, ...flagsOf(args)].filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  return [
    ...credentialsIn(url),
    ...pairs.flatMap(([name, value]) => [
      ...(isSecretName(name) || looksRandom(value) ? [value] : []),
      ...inHeader(value),
      ...credentialsIn(value),
    ]),
  ]
}

/** `--api-key x` and `--api-key=x` as name and value; any other argument is a value without a name. */
function flagsOf(args: readonly string[]): [string, string][] {
  return args.flatMap((arg, i): [string, string][] => {
    const [, name, value] = /^--?([\w-]+)=(.*)$/su.exec(arg) ?? []
    if (name !== undefined) return [[name, value!]]
    const flag = /^--?([\w-]+)$/u.exec(args[i - 1] ?? '')?.[1]
    return [[arg.startsWith('-') ? '' : (flag ?? ''), arg]]
  })
}
