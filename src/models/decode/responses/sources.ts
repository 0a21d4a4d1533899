/** Citations of OpenAI's answers as `source` parts and as `citations` of a text. */
import type { LanguageModelV4Citation, LanguageModelV4Source } from '@ai-sdk/provider'
import type { Annotation, State } from './state.ts'

export function readAnnotation(state: State, annotation: Annotation): void {
  state.annotations.push(annotation)
  if (annotation.type === 'url_citation' || annotation.type === 'file_citation') state.citedSources.push(annotation)
  else state.emit(sourceOf(annotation, state.metadataKey, state.generateId()))
}

/** At the end: the cited sources that the search events have not named. */
export function emitCitedSources(state: State): void {
  for (const annotation of state.citedSources) {
    if (annotation.type === 'url_citation' ? state.hasWebSources : state.hasFileResults) continue
    state.emit(sourceOf(annotation, state.metadataKey, state.generateId()))
  }
}

export function citationsOf(annotations: readonly Annotation[], key: string): LanguageModelV4Citation[] {
  return annotations.flatMap((annotation) => {
    if (annotation.type === 'file_path') return []
    const id = annotation.type === 'url_citation' ? annotation.url : annotation.file_id
    const place =
      'start_index' in annotation ? { startIndex: annotation.start_index, endIndex: annotation.end_index } : undefined
    return [{ source: sourceOf(annotation, key, id), ...place }]
  })
}

function sourceOf(annotation: Annotation, key: string, id: string): LanguageModelV4Source {
  if (annotation.type === 'url_citation') {
    return { type: 'source', sourceType: 'url', id, url: annotation.url, title: annotation.title }
  }
  const isPath = annotation.type === 'file_path'
  const filename = isPath ? annotation.file_id : annotation.filename
  return {
    type: 'source',
    sourceType: 'document',
    id,
    mediaType: isPath ? 'application/octet-stream' : 'text/plain',
    title: filename,
    filename,
    providerMetadata: {
      [key]: {
        type: annotation.type,
        fileId: annotation.file_id,
        ...(annotation.type === 'container_file_citation'
          ? { containerId: annotation.container_id }
          : { index: annotation.index }),
      },
    },
  }
}
