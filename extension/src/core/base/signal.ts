/** Someone who wants to know is told; telling never fails because of one of them. */
export class Signal<T> {
  /** Returns the function that ends it. */
  connect(listener: (value: T) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  emit(value: T): void {
    for (const listener of [...this.listeners]) {
      listener(value);
    }
  }

  private readonly listeners = new Set<(value: T) => void>();
}
