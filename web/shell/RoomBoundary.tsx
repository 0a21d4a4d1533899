/** A room that fails shows its error in its place; the rest of the page goes on. */
import { Component, type ReactNode } from 'react'
import { ErrorNote } from '../kit/ErrorNote.tsx'

export class RoomBoundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {}

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override render() {
    if (this.state.error === undefined) return this.props.children
    return <ErrorNote error={this.state.error} onRetry={() => this.setState({ error: undefined })} />
  }
}
