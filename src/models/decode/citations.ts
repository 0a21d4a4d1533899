/** The sources of an answer: citations of the services, as `source` parts and as `citations` of a text. */
import type {
  JSONObject,
  LanguageModelV4CallOptions,
  LanguageModelV4Citation,
  LanguageModelV4Source,
} from '@ai-sdk/provider'
import { fieldsOf, isFields, numberOf, picked, textOf, type Fields } from './fields.ts'

/** A document of the prompt, or one that Anthropic has fetched. */
export interface CitedDocument {
  title: string
  filename?: string | undefined
  mediaType: string
}

/** Documents of the prompt that the model may cite, in order. */
export function documentsOf(prompt: LanguageModelV4CallOptions['prompt']): CitedDocument[] {
  const parts = prompt.flatMap((message) => (message.role === 'user' ? message.content : []))
  return parts.flatMap((part) => {
    if (part.type !== 'file' || !/^(application\/pdf|text\/plain)$/.test(part.mediaType)) return []
    if (fieldsOf(part.providerOptions?.['anthropic']?.['citations'])?.['enabled'] !== true) return []
    const { filename, mediaType } = part
    return [{ title: filename ?? 'Untitled Document', filename, mediaType }]
  })
}

/** Anthropic's. Undefined if the citation has neither a page nor a known document. */
export function anthropicSource(
  citation: Fields,
  documents: readonly CitedDocument[],
  newId: () => string,
): LanguageModelV4Source | undefined {
  const { type, cited_text: citedText, document_index: at, url } = citation
  if (type === 'web_search_result_location') {
    const anthropic = { citedText, encryptedIndex: citation['encrypted_index'] } as JSONObject
    const page = { url: String(url), title: textOf(citation['title']), providerMetadata: { anthropic } }
    return { type: 'source', sourceType: 'url', id: newId(), ...page }
  }
  const document = documents[Number(at)]
  if (document === undefined || (type !== 'page_location' && type !== 'char_location')) return undefined
  const places = ['start_page_number', 'end_page_number', 'start_char_index', 'end_char_index']
  return documentSource(newId(), citation, document, picked(citation, 'cited_text', ...places))
}

function documentSource(
  id: string,
  citation: Fields,
  document: CitedDocument,
  anthropic: Fields,
): LanguageModelV4Source {
  const title = textOf(citation['document_title']) ?? document.title
  const providerMetadata = { anthropic: anthropic as JSONObject }
  return { type: 'source', sourceType: 'document', id, ...document, title, providerMetadata }
}

export function anthropicCitation(citation: Fields, documents: readonly CitedDocument[]): LanguageModelV4Citation {
  const citedText = textOf(citation['cited_text'])
  const cited = citedText === undefined ? {} : { citedText }
  const url = textOf(citation['url']) ?? textOf(citation['source'])
  if (url !== undefined) {
    const page = { url, title: textOf(citation['title']), providerMetadata: { anthropic: citation as JSONObject } }
    return { source: { type: 'source', sourceType: 'url', id: url, ...page }, ...cited }
  }
  const at = numberOf(citation['document_index']) ?? 0
  const document = documents[at] ?? { title: `Document ${at}`, mediaType: 'text/plain' }
  return { source: documentSource(textOf(citation['file_id']) ?? String(at), citation, document, citation), ...cited }
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
  return { source: openAISource(annotation, id), ...picked(annotation, 'start_index', 'end_index') }
}

/** Google's: searches, images, files and maps. `key` identifies a source, to detect duplicates. */
export function groundingSource(
  { web, image, retrievedContext: found, maps }: Fields,
  newId: () => string,
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
