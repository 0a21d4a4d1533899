/** Where an answer comes from: what the services cite, as `source` parts and as `citations` of a text. */
import type {
  JSONObject,
  LanguageModelV4CallOptions,
  LanguageModelV4Citation,
  LanguageModelV4Source,
} from '@ai-sdk/provider'
import { camelCased } from './camel.ts'
import { fieldsOf, isFields, numberOf, textOf, type Fields } from './fields.ts'

type NewId = () => string

/** A document of the prompt, or one that Anthropic has fetched. */
export interface CitedDocument {
  title: string
  filename?: string | undefined
  mediaType: string
}

/** Documents of the prompt that the model may cite, in their order. */
export function documentsOf(prompt: LanguageModelV4CallOptions['prompt']): CitedDocument[] {
  const parts = prompt.flatMap((message) => (message.role === 'user' ? message.content : []))
  return parts.flatMap((part) => {
    if (part.type !== 'file' || !/^(application\/pdf|text\/plain)$/.test(part.mediaType)) return []
    if (fieldsOf(part.providerOptions?.['anthropic']?.['citations'])?.['enabled'] !== true) return []
    const { filename, mediaType } = part
    return [{ title: filename ?? 'Untitled Document', filename, mediaType }]
  })
}

/** Anthropic's. Undefined if the citation has no page and no document that we know. */
export function anthropicSource(
  citation: Fields,
  documents: readonly CitedDocument[],
  newId: NewId,
): LanguageModelV4Source | undefined {
  const { type, cited_text: citedText, document_index: at, url } = citation
  if (type === 'web_search_result_location') {
    const anthropic = { citedText, encryptedIndex: citation['encrypted_index'] } as JSONObject
    const page = { url: String(url), title: textOf(citation['title']), providerMetadata: { anthropic } }
    return { type: 'source', sourceType: 'url', id: newId(), ...page }
  }
  const document = documents[Number(at)]
  if (document === undefined || (type !== 'page_location' && type !== 'char_location')) return undefined
  const places = Object.entries(citation).filter(([key]) => /^(start|end)_/.test(key))
  return {
    type: 'source',
    sourceType: 'document',
    id: newId(),
    mediaType: document.mediaType,
    title: textOf(citation['document_title']) ?? document.title,
    filename: document.filename,
    providerMetadata: { anthropic: { citedText, ...(camelCased(Object.fromEntries(places)) as object) } as JSONObject },
  }
}

export function anthropicCitation(citation: Fields, documents: readonly CitedDocument[]): LanguageModelV4Citation {
  const providerMetadata = { anthropic: citation as JSONObject }
  const citedText = textOf(citation['cited_text'])
  const cited = citedText === undefined ? {} : { citedText }
  const url = textOf(citation['url']) ?? textOf(citation['source'])
  if (url !== undefined) {
    const title = textOf(citation['title'])
    return { source: { type: 'source', sourceType: 'url', id: url, url, title, providerMetadata }, ...cited }
  }
  const at = numberOf(citation['document_index']) ?? 0
  const document = documents[at]
  const source: LanguageModelV4Source = {
    type: 'source',
    sourceType: 'document',
    id: textOf(citation['file_id']) ?? String(at),
    mediaType: document?.mediaType ?? 'text/plain',
    title: textOf(citation['document_title']) ?? document?.title ?? `Document ${at}`,
    filename: document?.filename,
    providerMetadata,
  }
  return { source, ...cited }
}

/** OpenAI's. */
export function openAISource(annotation: Fields, id: string): LanguageModelV4Source {
  const { type, file_id: fileId, container_id: containerId, index, title } = annotation
  if (type === 'url_citation') {
    return { type: 'source', sourceType: 'url', id, url: String(annotation['url']), title: textOf(title) }
  }
  const isPath = type === 'file_path'
  const filename = String((isPath ? fileId : annotation['filename']) ?? fileId)
  const place = type === 'container_file_citation' ? { containerId } : { index }
  return {
    type: 'source',
    sourceType: 'document',
    id,
    mediaType: isPath ? 'application/octet-stream' : 'text/plain',
    title: filename,
    filename,
    providerMetadata: { openai: { type, fileId, ...place } as JSONObject },
  }
}

export function openAICitation(annotation: Fields): LanguageModelV4Citation {
  const id = String(annotation['type'] === 'url_citation' ? annotation['url'] : annotation['file_id'])
  const [startIndex, endIndex] = [numberOf(annotation['start_index']), numberOf(annotation['end_index'])]
  const place = startIndex === undefined || endIndex === undefined ? {} : { startIndex, endIndex }
  return { source: openAISource(annotation, id), ...place }
}

/** Google's: searches, images, files and maps. `key` tells whether it is known. */
export function groundingSource(
  { web, image, retrievedContext: found, maps }: Fields,
  newId: NewId,
): { key: string; part: LanguageModelV4Source } | undefined {
  const link = (url: unknown, title: unknown) => {
    if (typeof url !== 'string' || url === '') return undefined
    const part = { type: 'source', sourceType: 'url', id: newId(), url, title: textOf(title) } as const
    return { key: JSON.stringify(['url', url]), part }
  }
  if (isFields(web)) return link(web['uri'], web['title'])
  if (isFields(image)) return link(image['sourceUri'], image['title'])
  if (!isFields(found)) return link(fieldsOf(maps)?.['uri'], fieldsOf(maps)?.['title'])
  const uri = textOf(found['uri'])
  if (uri !== undefined && /^https?:\/\//.test(uri)) return link(uri, found['title'])
  const path = uri || textOf(found['fileSearchStore'])
  if (!path) return undefined
  const title = textOf(found['title']) ?? 'Unknown Document'
  const mediaType = (uri && mediaTypes.find(([ending]) => ending.test(uri))?.[1]) || 'application/octet-stream'
  const filename = path.split('/').pop()
  const key = JSON.stringify(uri ? ['document', uri] : ['file-search', path, title])
  return { key, part: { type: 'source', sourceType: 'document', id: newId(), mediaType, title, filename } }
}

const mediaTypes: [RegExp, string][] = [
  [/\.pdf$/, 'application/pdf'],
  [/\.txt$/, 'text/plain'],
  [/\.docx$/, 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  [/\.doc$/, 'application/msword'],
  [/\.(md|markdown)$/, 'text/markdown'],
]
