/** The panel's icon: three selvages, solid, lined and hatched. In the shape that Lumino asks of an icon. */
export const panelIcon = {
  render(host: HTMLElement): void {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('viewBox', '0 0 16 16');
    svg.setAttribute('class', 'jl-panel-icon');
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    path.setAttribute(
      'd',
      'M2.5 2.5v11M7 2.5h2v3H7zM7 10.500h2v3H7zM8 5.500v5M12 2.500l2 2M12 6.500l2 2M12 10.500l2 2'
    );
    svg.append(path);
    host.replaceChildren(svg);
  },
  unrender(host: HTMLElement): void {
    host.replaceChildren();
  }
};
