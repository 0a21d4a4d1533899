/** Where spans are sent: from the config, then from OpenTelemetry's own environment variables. Off unless one of them names an endpoint. */
import { MillraceError } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'

/** Export of traces to an OpenTelemetry collector, over OTLP/HTTP with JSON. */
export interface OtlpConfig {
  /** Base URL of the collector: `http://localhost:4318`. Traces go to `<endpoint>/v1/traces`. */
  endpoint: string
  /** Headers of each request, such as a key. Read them from the environment; do not write them here. */
  headers?: Record<string, string>
  /** Default `millrace`. */
  serviceName?: string
  /** Also send prompts, answers, the input and output of tools, and messages of errors. Default false. */
  content?: boolean
}

/** Where and how spans are sent. */
export interface OtlpSettings {
  url: string
  headers: Record<string, string>
  serviceName: string
  content: boolean
}

type Env = Readonly<Record<string, string | undefined>>

/** Undefined if no traces are exported. Throws `bad-config`. */
export function otlpSettingsOf(config: OtlpConfig | undefined, env: Env): OtlpSettings | undefined {
  if (env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return undefined
  const given = (name: string) => ownValue(env, name)?.trim() || undefined
  const url = config?.endpoint ?? given('OTEL_EXPORTER_OTLP_ENDPOINT')
  const whole = config === undefined ? given('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') : undefined
  if (whole === undefined && url === undefined) return undefined
  const said = given('OTEL_EXPORTER_OTLP_TRACES_HEADERS') ?? given('OTEL_EXPORTER_OTLP_HEADERS')
  return {
    url: whole === undefined ? `${checkUrl(url!).replace(/\/+$/u, '')}/v1/traces` : checkUrl(whole),
    headers: { ...readHeaders(said), ...config?.headers },
    serviceName: config?.serviceName ?? given('OTEL_SERVICE_NAME') ?? 'millrace',
    content: config?.content ?? false,
  }
}

/** The values of the headers, which must not be recorded. */
export function otlpSecrets(settings: OtlpSettings | undefined): string[] {
  return Object.values(settings?.headers ?? {}).flatMap((value) => [value, ...value.split(' ').slice(1)])
}

function checkUrl(text: string): string {
  if (/^https?:\/\//u.test(text) && URL.canParse(text)) return text
  // Not repeated: it may contain a password.
  const cure = 'Write the URL of a collector, such as http://localhost:4318.'
  throw new MillraceError('bad-config', `The endpoint for traces is not an http or https URL. ${cure}`)
}

/** `name=value,name=value`, with values encoded as in a URL. */
function readHeaders(text = ''): Record<string, string> {
  const pairs = text.split(',').flatMap((pair): [string, string][] => {
    const at = pair.indexOf('=')
    return at < 1 ? [] : [[pair.slice(0, at).trim(), decode(pair.slice(at + 1).trim())]]
  })
  return Object.fromEntries(pairs)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
