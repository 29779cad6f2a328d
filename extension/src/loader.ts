/** All that a widget keeps of its script: the renderer is in one model that the widgets of a kernel share. */

interface Shared {
  get(name: string): unknown;
}

interface Model extends Shared {
  widget_manager: { get_model(id: string): Promise<Shared> };
}

interface Renderer {
  default: { render(context: { model: Model; el: HTMLElement }): () => void };
}

const loaded = new Map<string, Promise<Renderer>>();

async function render(context: { model: Model; el: HTMLElement }): Promise<() => void> {
  const { model, el } = context;
  const named = model.get('renderer');
  const shared =
    typeof named === 'string'
      ? await model.widget_manager.get_model(named.replace('IPY_MODEL_', ''))
      : (named as Shared);
  const code = String(shared.get('code'));
  let renderer = loaded.get(code);
  if (!renderer) {
    const url = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
    renderer = import(url) as Promise<Renderer>;
    loaded.set(code, renderer);
  }
  const root = el.getRootNode();
  const place = root instanceof ShadowRoot ? root : document.head;
  if (!place.querySelector('style[data-jitlab]')) {
    const style = document.createElement('style');
    style.dataset.jitlab = '';
    style.textContent = String(shared.get('css'));
    place.append(style);
  }
  return (await renderer).default.render(context);
}

export default { render };
