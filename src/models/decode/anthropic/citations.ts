/** Citations in an answer: as sources of their own, and at the end of the text that they belong to. */
import type {
  JSONObject,
  LanguageModelV4Citation,
  LanguageModelV4Source,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import type { Citation } from './event-schema.ts'
import type { AnthropicState } from './state.ts'

export function readCitation(state: AnthropicState, index: number, citation: Citation): void {
  const block = state.blocks.get(index)
  if (block?.type === 'text') block.citations.push(citation)
  state.heldByIndex.get(index)?.citations.push(citation)
  if (citation.type === 'web_search_result_location') state.citedPages.push(citation)
  else emitSource(state, citation)
}

/** Nothing if the citation has no page and no document that we know. */
export function emitSource(state: AnthropicState, citation: Citation): void {
  const source = sourceOf(state, citation)
  if (source !== undefined) state.emit(source)
}

function sourceOf({ documents, generateId }: AnthropicState, citation: Citation): LanguageModelV4Source | undefined {
  const citedText = citation.cited_text
  if (citation.type === 'web_search_result_location') {
    const { url, title, encrypted_index: encryptedIndex } = citation
    const providerMetadata = { anthropic: { citedText, encryptedIndex } }
    return {
      type: 'source',
      sourceType: 'url',
      id: generateId(),
      url,
      title: title ?? undefined,
      providerMetadata,
    }
  }
  if (citation.type !== 'page_location' && citation.type !== 'char_location') return undefined
  const document = documents[citation.document_index]
  if (!document) return undefined
  const { filename, mediaType } = document
  const place =
    citation.type === 'page_location'
      ? { startPageNumber: citation.start_page_number, endPageNumber: citation.end_page_number }
      : { startCharIndex: citation.start_char_index, endCharIndex: citation.end_char_index }
  return {
    type: 'source',
    sourceType: 'document',
    id: generateId(),
    mediaType,
    title: citation.document_title ?? document.title,
    filename,
    providerMetadata: { anthropic: { citedText, ...place } },
  }
}

export function textEnd(state: AnthropicState, id: string, citations: Citation[]): LanguageModelV4StreamPart {
  if (citations.length === 0) return { type: 'text-end', id }
  return {
    type: 'text-end',
    id,
    citations: citations.map((citation) => citationOf(state, citation)),
    providerMetadata: { anthropic: { citations: citations as unknown as JSONObject[] } },
  }
}

function citationOf({ documents }: AnthropicState, citation: Citation): LanguageModelV4Citation {
  const providerMetadata = { anthropic: { ...citation } as unknown as JSONObject }
  const citedText = citation.cited_text
  if (citation.type === 'web_search_result_location' || citation.type === 'search_result_location') {
    const url = citation.type === 'web_search_result_location' ? citation.url : citation.source
    const title = citation.title ?? undefined
    return {
      source: { type: 'source', sourceType: 'url', id: url, url, title, providerMetadata },
      citedText,
    }
  }
  const { document_index: at, document_title: ownTitle, file_id: file } = citation
  const document = documents[at]
  const source: LanguageModelV4Source = {
    type: 'source',
    sourceType: 'document',
    id: file ?? String(at),
    mediaType: document?.mediaType ?? 'text/plain',
    title: ownTitle ?? document?.title ?? `Document ${at}`,
    filename: document?.filename,
    providerMetadata,
  }
  return { source, citedText }
}
