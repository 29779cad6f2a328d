import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

const MIME = 'application/vnd.jitlab.report+json';

class Renderer extends Widget implements IRenderMime.IRenderer {
  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.node.textContent = JSON.stringify(model.data[MIME]);
    return Promise.resolve();
  }
}

const extension: IRenderMime.IExtension = {
  id: 'jitlab:mime',
  description: 'Shows the jitlab reports kept in a notebook',
  rendererFactory: { safe: true, mimeTypes: [MIME], createRenderer: () => new Renderer() },
  rank: 0,
  dataType: 'json'
};

export default extension;
