/** The extensions for a request to the OpenAI routes: the requested ones that the server allows. */
import { didYouMean } from '../../pipeline/nearest.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import type { OpenAiExtension } from '../../wire/openai/openai-output.ts'
import type { HandlerContext } from '../handler-context.ts'
import type { OpenAiRequest } from './request.ts'

const known: readonly OpenAiExtension[] = ['tools', 'trace']

export interface Base {
  path: string
  /** Extensions that are on by default, if the server allows them. */
  on: readonly OpenAiExtension[]
  /** Extensions that are allowed by default. A trace contains the system prompts. */
  allowed: readonly OpenAiExtension[]
}

export const bases: readonly Base[] = [
  { path: '/v1', on: [], allowed: ['tools'] },
  { path: '/api/v1', on: known, allowed: known },
]

/** The extensions that the header or the body asks for. Throws {@link BadParameter}. */
export function readExtensions(
  { openai }: HandlerContext,
  request: Request,
  { extensions }: OpenAiRequest,
  { path, on, ...base }: Base,
): readonly OpenAiExtension[] {
  const allowed = openai.extensions ?? base.allowed
  const header = request.headers.get('x-millrace-extensions')
  if (header === null && (extensions === undefined || extensions === null))
    return on.filter((each) => allowed.includes(each))
  const param = extensions === undefined || extensions === null ? 'X-Millrace-Extensions' : 'extensions'
  const list = param === 'extensions' ? extensions : (header ?? '').split(',').map((name) => name.trim())
  if (!Array.isArray(list)) throw new BadParameter(param, `must be an array of ${known.join(', ')}.`)
  return list
    .filter((name) => name !== '')
    .map((name: unknown) => {
      const extension = known.find((each) => each === name)
      if (extension === undefined) {
        const hint = typeof name === 'string' ? didYouMean(name, known) : ''
        throw new BadParameter(param, `must be one or more of ${known.join(', ')}${hint}.`)
      }
      if (!allowed.includes(extension)) {
        const cure = `The operator can allow it with server.openai.extensions: ['${extension}'] in the config`
        throw new BadParameter(param, `must not be ${extension}: this server does not allow it under ${path}. ${cure}.`)
      }
      return extension
    })
}
