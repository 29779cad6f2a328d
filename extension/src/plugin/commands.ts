import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { WidgetTracker } from '@jupyterlab/apputils';
import type { CommandRegistry } from '@lumino/commands';
import { keyName, KEYS, press, SELECTORS, shortcutOf, type Key } from '../core/panel/keys';
import type { JitlabView } from './lab-panel';

/** Every key of the panel is a command; its key stands in the settings (`jupyter.lab.shortcuts`) and can be changed there. */
export function addKeys({ commands }: JupyterFrontEnd, panel: JitlabView, mains: WidgetTracker<JitlabView>): void {
  const at = (key: Key): Element | null => {
    const focused = document.activeElement;
    if (focused?.closest(SELECTORS[key.place])) {
      return focused;
    }
    const shown = [panel, mains.currentWidget].find(view => view?.isVisible);
    return key.place === 'panel' ? (shown?.view.element ?? null) : null;
  };
  for (const key of KEYS.filter(({ id }) => !commands.hasCommand(`jitlab:${id}`))) {
    commands.addCommand(`jitlab:${key.id}`, {
      label: key.label,
      describedBy: { args: {} },
      isEnabled: () => at(key) !== null,
      execute: () => {
        const element = at(key);
        if (element) {
          press(key, element);
        }
      }
    });
  }
}

/** Lets the application look for a command; whether it had one. */
export function runKey(commands: CommandRegistry, event: KeyboardEvent): boolean {
  commands.processKeydownEvent(event);
  return event.defaultPrevented;
}

/** The keys that a command has now. */
export function keyNames(commands: CommandRegistry, key: Key): string {
  const bound = commands.keyBindings.filter(({ command }) => command === `jitlab:${key.id}`);
  const names = bound.map(({ keys }) => (keys[0] === shortcutOf(key) ? keyName(key) : keys.join(', ')));
  return names.join(' or ') || 'none';
}
